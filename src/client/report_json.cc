#include <cmath>
#include <nlohmann/json.hpp>

#include "base/cat.h"
#include "client/serve_report.h"

namespace headrace::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMs = 1e3;

/// A number, or "inf" as vllm writes it.
Json number_or_inf(double value) { return std::isinf(value) ? Json("inf") : Json(value); }

Json spread_json(const Spread& s) {
  return {{"mean", s.mean * kMs}, {"median", s.median * kMs}, {"std", s.std * kMs}, {"p50", s.median * kMs},
          {"p90", s.p90 * kMs},   {"p95", s.p95 * kMs},       {"p99", s.p99 * kMs}, {"max", s.max * kMs}};
}

Json pace_json(const std::vector<EffectiveThroughput>& rates) {
  Json rows = Json::array();
  for (const EffectiveThroughput& rate : rates) {
    rows.push_back({{"tokens_per_second", rate.answer_rate},
                    {"effective_request_throughput", rate.rate},
                    {"good_ratio", rate.good_ratio}});
  }
  return rows;
}

template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void add_vllm_spreads(const ServeFigures& f, Json& json) {
  for (const NamedSpread& row : latency_rows(f)) {
    const Json spread = spread_json(*row.spread);
    for (const char* statistic : {"mean", "median", "std", "p50", "p90", "p95", "p99"}) {
      json[cat(statistic, "_", row.key, "_ms")] = spread[statistic];
    }
  }
}

Json own_json(const ServeBenchResult& result, const ServeRun& run, const ReportHead& head) {
  const ServeFigures& f = run.figures;
  return {{"client", head.client},
          {"cache", cache_state_name(result.cache)},
          {"prompt_tokens_counted_by", result.token_source},
          {"interrupted", run.load.stopped},
          {"incomplete", f.incomplete},
          {"cancelled", f.cancelled},
          {"not_sent", f.not_sent},
          {"cached_tokens", f.cached_tokens},
          {"mean_concurrency", f.mean_concurrency},
          {"closed_loop_request_throughput", value_or_null(f.loop_rate)},
          {"effective_throughput_ema", pace_json(f.pace.by_averages)},
          {"effective_throughput_cum", pace_json(f.pace.by_sums)},
          {"send_lag_ms", spread_json(f.send_lag)},
          {"held_back_ms", spread_json(f.held_back)},
          {"client_cpu_seconds", f.cpu_seconds},
          {"client_cpu_share", f.cpu_share},
          {"client_cpu_us_per_token", f.cpu_per_token * 1e6},
          {"client_longest_turn_ms", f.longest_turn * kMs},
          {"warnings", f.warnings}};
}

Json metadata_json(const ReportHead& head) {
  Json json = Json::object();
  for (const std::string& entry : head.metadata) {
    const size_t equals = entry.find('=');
    json[entry.substr(0, equals)] = equals == std::string::npos ? "" : entry.substr(equals + 1);
  }
  return json;
}

}  // namespace

Json run_json(const ServeBenchSpec& spec, const ServeBenchResult& result, const ServeRun& run, const ReportHead& head) {
  const ServeFigures& f = run.figures;
  Json json{{"date", head.date},
            {"backend", is_chat(spec.target) ? "openai-chat" : "openai"},
            {"base_url", spec.target.base_url},
            {"endpoint", spec.target.endpoint},
            {"model_id", result.model},
            {"dataset_name", spec.data.name},
            {"num_prompts", std::ssize(run.load.records) + run.load.not_sent},
            {"request_rate", number_or_inf(run.rate)},
            {"burstiness", number_or_inf(spec.burstiness)},
            {"max_concurrency", run.max_concurrency > 0 ? Json(run.max_concurrency) : Json(nullptr)},
            {"seed", spec.seed},
            {"duration", f.duration},
            {"completed", f.completed},
            {"failed", f.failed},
            {"total_input_tokens", f.input_tokens},
            {"total_output_tokens", f.output_tokens},
            {"request_throughput", f.request_rate},
            {"request_goodput", value_or_null(f.goodput)},
            {"output_throughput", f.output_rate},
            {"total_token_throughput", f.total_rate},
            {"max_output_tokens_per_s", f.peak_output_rate},
            {"max_concurrent_requests", f.most_concurrent}};
  add_vllm_spreads(f, json);
  json["metadata"] = metadata_json(head);
  json["headrace"] = own_json(result, run, head);
  return json;
}

Json report_json(const ServeBenchSpec& spec, const ServeBenchResult& result, const ReportHead& head) {
  if (result.runs.size() == 1 && !spec.search_rate) return run_json(spec, result, result.runs[0], head);
  Json json{{"runs", Json::array()}};
  for (const ServeRun& run : result.runs) json["runs"].push_back(run_json(spec, result, run, head));
  if (spec.search_rate) json["best_request_rate"] = value_or_null(result.best_rate);
  return json;
}

}  // namespace headrace::client
