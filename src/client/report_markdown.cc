#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "client/serve_report.h"

namespace headrace::client {
namespace {

std::string rate_text(const ServeFigures& f) {
  std::string text = fmt::format(
      "{} completed, {} failed, {} incomplete, {} cancelled, {} not sent, in {:.2f} s\n"
      "{} tokens in ({} of them found in the server's cache), {} out\n"
      "{:.3f} requests/s, {:.1f} output tokens/s (at most {:.0f} in a second), {:.1f} tokens/s in and out\n",
      f.completed, f.failed, f.incomplete, f.cancelled, f.not_sent, f.duration, f.input_tokens, f.cached_tokens,
      f.output_tokens, f.request_rate, f.output_rate, f.peak_output_rate, f.total_rate);
  if (f.loop_rate) {
    text += fmt::format("number of clients / mean latency: {:.3f} requests/s\n", *f.loop_rate);
  }
  if (f.goodput) text += fmt::format("goodput: {:.3f} requests/s\n", *f.goodput);
  return text;
}

std::string latency_table(const ServeFigures& f, const ReportHead& head) {
  std::string text = "\n| ms | mean | std | p50 | p90 | p95 | p99 |\n|---|---:|---:|---:|---:|---:|---:|\n";
  for (const NamedSpread& row : latency_rows(f)) {
    if (std::ranges::find(head.shown, row.key) == head.shown.end()) continue;
    const Spread& s = *row.spread;
    text += fmt::format("| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", row.title, s.mean * 1e3,
                        s.std * 1e3, s.median * 1e3, s.p90 * 1e3, s.p95 * 1e3, s.p99 * 1e3);
  }
  return text;
}

std::string pace_table(const PaceFigures& pace) {
  std::string head = "\n| requests/s that keep a pace of tokens/s |", line = "|---|", averages = "| moving average |",
              sums = "| sums |";
  for (size_t i = 0; i < pace.by_averages.size(); ++i) {
    const EffectiveThroughput& a = pace.by_averages[i];
    const EffectiveThroughput& s = pace.by_sums[i];
    head += fmt::format(" {:g} |", a.answer_rate);
    line += "---:|";
    averages += fmt::format(" {:.3f} ({:.0f} %) |", a.rate, 100 * a.good_ratio);
    sums += fmt::format(" {:.3f} ({:.0f} %) |", s.rate, 100 * s.good_ratio);
  }
  return head + '\n' + line + '\n' + averages + '\n' + sums + '\n';
}

std::string own_cost(const ServeFigures& f) {
  return fmt::format(
      "\nthe client: sent {:.2f} ms late at P99, {:.3f} s of CPU time ({:.1f} % of a processor, {:.1f} us a token), "
      "longest turn {:.2f} ms\n",
      f.send_lag.p99 * 1e3, f.cpu_seconds, 100 * f.cpu_share, f.cpu_per_token * 1e6, f.longest_turn * 1e3);
}

std::string summary_table(const ServeBenchSpec& spec, const ServeBenchResult& result) {
  std::string text =
      "| load | completed | requests/s | output tok/s | total tok/s | TTFT mean | TTFT p99 | TPOT mean | E2EL mean | "
      "E2EL p99 | at pace 4 |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const ServeRun& run : result.runs) {
    const ServeFigures& f = run.figures;
    const auto four = std::ranges::find(f.pace.by_averages, 4.0, &EffectiveThroughput::answer_rate);
    text +=
        fmt::format("| {} | {} | {:.3f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.2f} | {:.1f} | {:.1f} | {:.3f} |\n",
                    load_name(spec, run), f.completed, f.request_rate, f.output_rate, f.total_rate, f.ttft.mean * 1e3,
                    f.ttft.p99 * 1e3, f.tpot.mean * 1e3, f.e2el.mean * 1e3, f.e2el.p99 * 1e3, four->rate);
  }
  return text + '\n';
}

}  // namespace

std::vector<NamedSpread> latency_rows(const ServeFigures& f) {
  return {{"ttft", "time to first token (TTFT)", &f.ttft},
          {"first_text", "time to first text", &f.first_text},
          {"itl", "gap between tokens (ITL)", &f.itl},
          {"tpot", "time per output token (TPOT)", &f.tpot},
          {"tpot_with_first", "the same, first token included", &f.tpot_with_first},
          {"e2el", "latency (E2EL)", &f.e2el}};
}

std::string load_name(const ServeBenchSpec& spec, const ServeRun& run) {
  const bool is_trace = spec.data.name == "trace";
  if (!is_trace && std::isinf(run.rate)) {
    if (run.max_concurrency == 0) return "all at once";
    return fmt::format("{} client{}", run.max_concurrency, run.max_concurrency == 1 ? "" : "s");
  }
  return (is_trace ? std::string("as recorded") : fmt::format("{:.3g} requests/s", run.rate)) +
         (run.max_concurrency > 0 ? fmt::format(", at most {} at once", run.max_concurrency) : "");
}

std::string report_markdown(const ServeBenchSpec& spec, const ServeBenchResult& result, const ReportHead& head) {
  std::string text = fmt::format("{} at {}{}: {} prompts, seed {}, prefix cache {}, prompt tokens counted by {}\n",
                                 result.model, spec.target.base_url, spec.target.endpoint, spec.data.name, spec.seed,
                                 cache_state_name(result.cache), result.token_source);
  for (const std::string& entry : head.metadata) text += printable(entry) + '\n';
  text += '\n';
  if (result.runs.size() > 1) text += summary_table(spec, result);
  for (const ServeRun& run : result.runs) {
    text += fmt::format("## {}\n\n", load_name(spec, run));
    text += rate_text(run.figures) + latency_table(run.figures, head) + pace_table(run.figures.pace) +
            own_cost(run.figures);
    for (const std::string& warning : run.figures.warnings) text += fmt::format("warning: {}\n", warning);
    text += '\n';
  }
  if (spec.search_rate) {
    text += result.best_rate ? fmt::format("highest rate within the limits: {:.2f} requests/s\n", *result.best_rate)
                             : "no rate was within the limits\n";
  }
  if (result.interrupted) text += "interrupted: figures are of what had finished\n";
  return text;
}

}  // namespace headrace::client
