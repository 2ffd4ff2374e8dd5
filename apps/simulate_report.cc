#include "apps/simulate_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

std::string spread_row(std::string_view name, const Spread& s) {
  return fmt::format("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n", name, s.mean * 1e3,
                     s.median * 1e3, s.p90 * 1e3, s.p95 * 1e3, s.p99 * 1e3, s.max * 1e3);
}

nlohmann::ordered_json json_of(const Spread& s) {
  return {{"mean", s.mean}, {"std", s.std}, {"median", s.median}, {"p90", s.p90},
          {"p95", s.p95},   {"p99", s.p99}, {"max", s.max}};
}

double hit_share(const CacheFigures& cache) {
  return cache.query_tokens == 0 ? 0 : static_cast<double>(cache.hit_tokens) / static_cast<double>(cache.query_tokens);
}

/// N clients / mean latency: what a closed loop of DeepSpeed-MII calls throughput.
double client_rate(const SimulationConfig& config, const LoadFigures& load) {
  return load.e2el.mean > 0 ? config.clients / load.e2el.mean : 0;
}

}  // namespace

std::string simulation_text(const SimulationConfig& config, const SimulationResult& result) {
  const LoadFigures load = load_figures(result.requests);
  const PipelineFigures pipeline = pipeline_figures(result);
  std::string text = fmt::format(
      "{} requests ({} refused), {} tokens in, {} out, in {:.3f} s of simulated time\n"
      "{:.3f} requests/s, {:.1f} output tokens/s (at most {:.0f} in a second), {:.1f} tokens/s in and out\n",
      load.requests, result.refused, load.input_tokens, load.output_tokens, load.duration, load.request_rate,
      load.output_rate, load.peak_rate, load.total_rate);
  if (config.clients > 0) {
    text += fmt::format("{} clients: {:.3f} requests/s by mean latency\n", config.clients, client_rate(config, load));
  }
  text += "\n| ms | mean | median | p90 | p95 | p99 | max |\n|---|---:|---:|---:|---:|---:|---:|\n";
  text += spread_row("time to first token (TTFT)", load.ttft);
  text += spread_row("gap between tokens (ITL)", load.itl);
  text += spread_row("time per output token (TPOT)", load.tpot);
  text += spread_row("latency (E2EL)", load.e2el);
  text += spread_row("step, slowest stage", pipeline.step_seconds);
  text += fmt::format(
      "\n{} steps of {:.1f} rows and {:.1f} tokens; in flight {:.2f} on average, {} at most\n"
      "{} preemptions, {:.1f} % of prompt tokens found in the cache, costs predicted with an error of {:.1f} %\n",
      result.steps.size(), pipeline.mean_rows, pipeline.mean_tokens, pipeline.mean_in_flight, result.most_in_flight,
      result.scheduler.preemptions, 100 * hit_share(result.cache), 100 * result.scheduler.cost_error);
  text += "\n| | stage idle | stage idle, steady | link busy |\n|---|---:|---:|---:|\n";
  for (size_t i = 0; i < pipeline.bubbles.size(); ++i) {
    text += fmt::format("| stage {} | {:.1f} % | {:.1f} % | {:.1f} % |\n", i, 100 * pipeline.bubbles[i],
                        100 * pipeline.steady_bubbles[i], 100 * pipeline.link_busy[i]);
  }
  text +=
      fmt::format("\n{} tokens checked against the reference, {} wrong\n", result.checked_tokens, result.wrong_tokens);
  return text;
}

nlohmann::ordered_json simulation_json(const SimulationConfig& config, const SimulationResult& result) {
  const LoadFigures load = load_figures(result.requests);
  const PipelineFigures pipeline = pipeline_figures(result);
  return {{"stages", config.machine.stages.size()},
          {"completed", load.requests},
          {"refused", result.refused},
          {"total_input_tokens", load.input_tokens},
          {"total_output_tokens", load.output_tokens},
          {"duration", load.duration},
          {"request_throughput", load.request_rate},
          {"client_throughput", client_rate(config, load)},
          {"output_throughput", load.output_rate},
          {"total_token_throughput", load.total_rate},
          {"peak_output_throughput", load.peak_rate},
          {"ttft", json_of(load.ttft)},
          {"itl", json_of(load.itl)},
          {"tpot", json_of(load.tpot)},
          {"e2el", json_of(load.e2el)},
          {"steps", result.steps.size()},
          {"step_seconds", json_of(pipeline.step_seconds)},
          {"mean_step_rows", pipeline.mean_rows},
          {"mean_step_tokens", pipeline.mean_tokens},
          {"mean_steps_in_flight", pipeline.mean_in_flight},
          {"most_steps_in_flight", result.most_in_flight},
          {"stage_idle", pipeline.bubbles},
          {"stage_idle_steady", pipeline.steady_bubbles},
          {"link_busy", pipeline.link_busy},
          {"preemptions", result.scheduler.preemptions},
          {"prefix_hit_share", hit_share(result.cache)},
          {"cost_error", result.scheduler.cost_error},
          {"checked_tokens", result.checked_tokens},
          {"wrong_tokens", result.wrong_tokens}};
}

}  // namespace headrace
