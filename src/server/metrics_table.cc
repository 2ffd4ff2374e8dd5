#include "server/metrics_table.h"

#include <algorithm>

#include "base/cat.h"
#include "base/check.h"

namespace headrace::server {
namespace {

using prometheus::MetricType;
using enum RequestHistogram;

constexpr MetricType kCounter = MetricType::Counter;
constexpr MetricType kGauge = MetricType::Gauge;
constexpr MetricType kHistogram = MetricType::Histogram;

double number(int64_t value) { return static_cast<double>(value); }
double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// For what this server does not do: that it never happened is true.
double never(const Scrape&) { return 0; }

std::vector<MetricSeries> by_outcome(const Scrape& s) {
  std::vector<MetricSeries> series;
  for (size_t i = 0; i < kNumOutcomes; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    series.push_back({{{"outcome", std::string(outcome_name(outcome))}}, number(s.requests->count_of(outcome))});
  }
  return series;
}

std::vector<MetricSeries> by_rejection(const Scrape& s) {
  std::vector<MetricSeries> series;
  for (size_t i = 0; i < kNumRejections; ++i) {
    const auto reason = static_cast<Rejection>(i);
    series.push_back({{{"reason", std::string(rejection_name(reason))}}, number(s.requests->count_of(reason))});
  }
  return series;
}

/// vLLM knows neither tool calls, which end with a stop token, nor deadlines as reasons of their own.
std::vector<MetricSeries> by_vllm_reason(const Scrape& s) {
  const auto count = [&](Outcome outcome) { return number(s.requests->count_of(outcome)); };
  return {{{{"finished_reason", "stop"}}, count(Outcome::kStop) + count(Outcome::kToolCalls)},
          {{{"finished_reason", "length"}}, count(Outcome::kLength)},
          {{{"finished_reason", "abort"}}, count(Outcome::kAborted)},
          {{{"finished_reason", "error"}}, count(Outcome::kError) + count(Outcome::kTimeout)}};
}

std::vector<MetricSeries> by_phase(const Scrape& s) {
  std::vector<MetricSeries> series;
  for (const Phase phase : {Phase::kLoading, Phase::kReady, Phase::kDraining, Phase::kFailed}) {
    series.push_back({{{"phase", std::string(phase_name(phase))}}, phase == s.phase ? 1.0 : 0.0});
  }
  return series;
}

std::vector<MetricSeries> lora_info(const Scrape&) {
  return {{{{"max_lora", "0"}, {"running_lora_adapters", ""}, {"waiting_lora_adapters", ""}}, 0}};
}

std::vector<MetricSeries> cache_config(const Scrape& s) {
  return {{{{"block_size", cat(s.model.kv_block_tokens)}, {"num_gpu_blocks", cat(s.model.kv_blocks)}}, 1}};
}

std::vector<MetricSeries> no_position(const Scrape&) { return {{{{"position", "0"}}, 0}}; }

double taken_requests(const Scrape& s) {
  double sum = 0;
  for (const Outcome outcome :
       {Outcome::kStop, Outcome::kLength, Outcome::kToolCalls, Outcome::kAborted, Outcome::kError, Outcome::kTimeout}) {
    sum += number(s.requests->count_of(outcome));
  }
  return sum;
}

/// A series for each machine of a cluster; none where the model is on one.
template <auto kField>
std::vector<MetricSeries> by_node(const Scrape& s) {
  std::vector<MetricSeries> series;
  for (const ClusterNode& node : s.cluster.nodes) {
    series.push_back({{{"node", node.name}}, static_cast<double>(node.*kField)});
  }
  return series;
}

const MetricRow kRows[] = {
    {"headrace_requests_running", kGauge, "Requests that are being computed.",
     [](const Scrape& s) { return number(s.model.running_requests); }},
    {"headrace_requests_waiting", kGauge, "Requests that wait to begin.",
     [](const Scrape& s) { return number(s.model.queued_requests); }},
    {"headrace_queue_tokens", kGauge, "Prompt tokens of the requests that wait to begin.",
     [](const Scrape& s) { return number(s.model.queued_tokens); }},
    {"headrace_sequences_running", kGauge, "Answers that are being computed; a request may ask for several.",
     [](const Scrape& s) { return number(s.model.running_sequences); }},
    {"headrace_sequences_waiting", kGauge, "Answers that wait to begin or to go on after a preemption.",
     [](const Scrape& s) { return number(s.model.waiting_sequences); }},
    {"headrace_backlog_seconds", kGauge, "Time that prompts and answers of all waiting requests would take.",
     [](const Scrape& s) { return s.model.backlog_seconds; }},
    {"headrace_requests_total", kCounter, "Requests that have ended, by outcome.", by_outcome},
    {"headrace_requests_taken_total", kCounter, "Requests that have ended, without those that were rejected.",
     taken_requests},
    {"headrace_requests_aborted_total", kCounter, "Requests whose client went before the end.",
     [](const Scrape& s) { return number(s.requests->count_of(Outcome::kAborted)); }},
    {"headrace_admission_rejections_total", kCounter, "Requests that were not taken, by reason.", by_rejection},

    {"headrace_prompt_tokens_total", kCounter, "Tokens of prompts, those found in the prefix cache included.",
     [](const Scrape& s) { return number(s.model.prompt_tokens); }},
    {"headrace_prompt_tokens_cached_total", kCounter, "Tokens of prompts that were found in the prefix cache.",
     [](const Scrape& s) { return number(s.model.cached_tokens); }},
    {"headrace_prompt_tokens_computed_total", kCounter, "Tokens of prompts that were not found in the prefix cache.",
     [](const Scrape& s) { return number(s.model.prompt_tokens - s.model.cached_tokens); }},
    {"headrace_generation_tokens_total", kCounter, "Tokens of answers.",
     [](const Scrape& s) { return number(s.model.completion_tokens); }},
    {"headrace_prefix_cache_queries_total", kCounter, "Tokens of prompts that were looked for in the prefix cache.",
     [](const Scrape& s) { return number(s.model.prefix_query_tokens); }},
    {"headrace_prefix_cache_hits_total", kCounter, "Tokens of prompts that the search in the prefix cache found.",
     [](const Scrape& s) { return number(s.model.prefix_hit_tokens); }},
    {"headrace_prefix_cache_hit_ratio", kGauge, "Share of the tokens looked for that were found, since the start.",
     [](const Scrape& s) { return ratio(number(s.model.prefix_hit_tokens), number(s.model.prefix_query_tokens)); }},
    {"headrace_prompt_tokens_per_second", kGauge, "Prompt tokens a second since the scrape before (1 s at least).",
     [](const Scrape& s) { return s.prompt_tokens_per_second; }},
    {"headrace_generation_tokens_per_second", kGauge, "Answer tokens a second since the scrape before (1 s at least).",
     [](const Scrape& s) { return s.generation_tokens_per_second; }},
    {"headrace_longest_sequence_tokens", kGauge, "Prompt and answer of the longest request so far.",
     [](const Scrape& s) { return number(s.requests->longest_sequence()); }},

    {"headrace_kv_cache_usage_ratio", kGauge, "Share of the KV cache that sequences hold, 0 to 1.",
     [](const Scrape& s) { return s.model.kv_cache_used; }},
    {"headrace_kv_cache_tokens", kGauge, "Tokens that the KV cache has room for.",
     [](const Scrape& s) { return number(s.kv_cache_tokens); }},
    {"headrace_kv_cache_used_tokens", kGauge, "Places for tokens in the blocks of the KV cache that sequences hold.",
     [](const Scrape& s) { return s.model.kv_cache_used * number(s.kv_cache_tokens); }},
    {"headrace_kv_blocks", kGauge, "Blocks of the KV cache.",
     [](const Scrape& s) { return number(s.model.kv_blocks); }},
    {"headrace_kv_used_blocks", kGauge, "Blocks that sequences hold.",
     [](const Scrape& s) { return number(s.model.kv_used_blocks); }},
    {"headrace_kv_cached_blocks", kGauge, "Blocks of cached prefixes that no sequence holds.",
     [](const Scrape& s) { return number(s.model.kv_cached_blocks); }},
    {"headrace_kv_evicted_blocks_total", kCounter, "Blocks of cached prefixes that were given up for others.",
     [](const Scrape& s) { return number(s.model.kv_evicted_blocks); }},
    {"headrace_kv_fragmentation_ratio", kGauge, "Share of the places in used blocks that hold no token yet, 0 to 1.",
     [](const Scrape& s) { return s.model.kv_fragmentation; }},
    {"headrace_preemptions_total", kCounter, "Sequences that gave their blocks up to others and were computed again.",
     [](const Scrape& s) { return number(s.model.preemptions); }},
    {"headrace_recent_preemptions", kGauge, "Preemptions since the scrape before (1 s at least).",
     [](const Scrape& s) { return number(s.recent_preemptions); }},

    {"headrace_steps_total", kCounter, "Steps that were computed.",
     [](const Scrape& s) { return number(s.model.steps); }},
    {"headrace_failed_steps_total", kCounter, "Steps that failed, with the requests that had begun.",
     [](const Scrape& s) { return number(s.model.failed_steps); }},
    {"headrace_seconds_without_step", kGauge, "While there is work: time since the last step ended.",
     [](const Scrape& s) { return s.model.seconds_without_step; }},
    {"headrace_iteration_tokens", kHistogram, "Tokens that a step computes: number of steps and sum only.",
     [](const Scrape& s) {
       return MetricSums{s.model.steps, number(s.model.step_tokens)};
     }},
    {"headrace_last_step_tokens", kGauge, "Tokens that the last step computed.",
     [](const Scrape& s) { return number(s.model.last_step_tokens); }},
    {"headrace_step_seconds_total", kCounter, "Time that stages have computed steps, all stages together.",
     [](const Scrape& s) { return s.model.step_seconds; }},
    {"headrace_generation_tokens_per_step", kGauge, "Answer tokens of a step, the mean since the start.",
     [](const Scrape& s) { return ratio(number(s.model.completion_tokens), number(s.model.steps)); }},
    {"headrace_cost_model_error_ratio", kGauge, "Moving mean of |predicted - measured| / measured time of a step.",
     [](const Scrape& s) { return s.model.cost_model_error; }},

    {"headrace_steps_in_flight", kGauge, "Steps that are computed at once over the machines of a cluster.",
     [](const Scrape& s) { return number(s.cluster.steps_in_flight); }},
    {"headrace_pipeline_tokens_total", kCounter, "Tokens that went from machine to machine.",
     [](const Scrape& s) { return number(s.cluster.tokens); }},
    {"headrace_node_losses_total", kCounter, "Times that a machine of the cluster was lost.",
     [](const Scrape& s) { return number(s.cluster.losses); }},
    {"headrace_node_up", kGauge, "1 for a machine of the cluster that answers, 0 for one that does not.",
     by_node<&ClusterNode::up>},
    {"headrace_node_layers", kGauge, "Layers that a machine holds.", by_node<&ClusterNode::num_layers>},
    {"headrace_node_busy_seconds_total", kCounter, "CPU time inside operators, of the thread that leads them.",
     by_node<&ClusterNode::busy_seconds>},
    {"headrace_node_compute_seconds_total", kCounter, "Time that a machine has computed steps.",
     by_node<&ClusterNode::compute_seconds>},
    {"headrace_node_serialise_seconds_total", kCounter, "Time between activations and the bytes of frames.",
     by_node<&ClusterNode::serialise_seconds>},
    {"headrace_node_wire_seconds_total", kCounter, "Time that activations took to be sent on.",
     by_node<&ClusterNode::wire_seconds>},
    {"headrace_node_wait_seconds_total", kCounter, "Time that a machine waited for activations, the plan being there.",
     by_node<&ClusterNode::wait_seconds>},
    {"headrace_node_sent_bytes_total", kCounter, "Bytes from the head to a machine; the head's own: activations.",
     by_node<&ClusterNode::bytes_sent>},
    {"headrace_node_received_bytes_total", kCounter, "Bytes from a machine to the head.",
     by_node<&ClusterNode::bytes_received>},
    {"headrace_node_round_trip_seconds", kGauge, "Of heartbeats between head and machine, lately.",
     by_node<&ClusterNode::round_trip_seconds>},
    {"headrace_node_missed_heartbeats_total", kCounter, "Heartbeats that were not answered in time.",
     by_node<&ClusterNode::missed_heartbeats>},

    {"headrace_connections", kGauge, "Open connections of clients.",
     [](const Scrape& s) { return number(s.connections.connections); }},
    {"headrace_open_requests", kGauge, "Requests of all routes whose answers are not complete.",
     [](const Scrape& s) { return number(s.connections.open_requests); }},
    {"headrace_phase", kGauge, "1 for the phase that the server is in, 0 for the others.", by_phase},
    {"headrace_load_progress_ratio", kGauge, "Share of the model that is loaded, 0 to 1.",
     [](const Scrape& s) { return s.load_progress; }},

    {"headrace_time_to_first_token_seconds", kHistogram, "From the arrival of a request to its first token.",
     kTimeToFirstToken},
    {"headrace_inter_token_latency_seconds", kHistogram, "From a token of an answer to the next one.",
     kInterTokenLatency},
    {"headrace_request_time_per_output_token_seconds", kHistogram,
     "Mean time of a request between the tokens of an answer.", kTimePerOutputToken},
    {"headrace_e2e_request_latency_seconds", kHistogram, "From the arrival of a request to its end.", kEndToEnd},
    {"headrace_request_queue_time_seconds", kHistogram, "From the submission of a request to its first step.", kQueue},
    {"headrace_request_prefill_time_seconds", kHistogram, "From the first step of a request to its first token.",
     kPrefill},
    {"headrace_request_decode_time_seconds", kHistogram, "From the first token of a request to its last one.", kDecode},
    {"headrace_request_inference_time_seconds", kHistogram, "From the first step of a request to its last token.",
     kInference},
    {"headrace_request_prompt_tokens", kHistogram, "Tokens of a request's prompt.", kPromptTokens},
    {"headrace_request_generation_tokens", kHistogram, "Tokens of a request's answers, all together.",
     kGenerationTokens},
    {"headrace_request_max_num_generation_tokens", kHistogram, "Tokens of a request's longest answer.",
     kMaxGenerationTokens},
    {"headrace_request_params_n", kHistogram, "Answers that a request asks for (n).", kParamN},
    {"headrace_request_params_max_tokens", kHistogram, "The max_tokens of requests that set it.", kParamMaxTokens},
    {"headrace_prefill_seconds_total", kCounter, "Sum of the prefill times of requests.",
     [](const Scrape& s) { return s.requests->collect(kPrefill).sample_sum; }},
    {"headrace_decode_seconds_total", kCounter, "Sum of the decode times of requests.",
     [](const Scrape& s) { return s.requests->collect(kDecode).sample_sum; }},

    {"vllm:request_success_total", kCounter, "Requests that have ended, by reason.", by_vllm_reason},
    {"vllm:lora_requests_info", kGauge, "Adapters in use: none, as there is no LoRA here.", lora_info},
    {"vllm:cache_config_info", kGauge, "Size and number of the blocks of the KV cache; always 1.", cache_config},
    {"vllm:spec_decode_num_drafts_total", kCounter, "Drafts of speculative decoding: none here.", never},
    {"vllm:spec_decode_num_draft_tokens_total", kCounter, "Tokens that were drafted: none here.", never},
    {"vllm:spec_decode_num_accepted_tokens_total", kCounter, "Drafted tokens that were accepted: none here.", never},
    {"vllm:spec_decode_num_accepted_tokens_per_pos_total", kCounter,
     "Drafted tokens that were accepted, by their place: none here.", no_position},
    {"sglang:spec_accept_length", kGauge, "Tokens of a draft that are accepted: none here.", never},
};

const MetricAlias kAliases[] = {
    {"vllm:num_requests_running", "headrace_requests_running"},
    {"vllm:num_requests_waiting", "headrace_requests_waiting"},
    {"vllm:kv_cache_usage_perc", "headrace_kv_cache_usage_ratio"},
    {"vllm:gpu_cache_usage_perc", "headrace_kv_cache_usage_ratio"},
    {"vllm:prompt_tokens_total", "headrace_prompt_tokens_total"},
    {"vllm:prompt_tokens_cached_total", "headrace_prompt_tokens_cached_total"},
    {"vllm:generation_tokens_total", "headrace_generation_tokens_total"},
    {"vllm:prefix_cache_queries_total", "headrace_prefix_cache_queries_total"},
    {"vllm:prefix_cache_hits_total", "headrace_prefix_cache_hits_total"},
    {"vllm:gpu_prefix_cache_queries_total", "headrace_prefix_cache_queries_total"},
    {"vllm:gpu_prefix_cache_hits_total", "headrace_prefix_cache_hits_total"},
    {"vllm:iteration_tokens_total", "headrace_iteration_tokens"},
    {"vllm:num_preemptions_total", "headrace_preemptions_total"},
    {"vllm:admission_rejections_total", "headrace_admission_rejections_total"},
    {"vllm:time_to_first_token_seconds", "headrace_time_to_first_token_seconds"},
    {"vllm:inter_token_latency_seconds", "headrace_inter_token_latency_seconds"},
    {"vllm:time_per_output_token_seconds", "headrace_inter_token_latency_seconds"},
    {"vllm:request_time_per_output_token_seconds", "headrace_request_time_per_output_token_seconds"},
    {"vllm:e2e_request_latency_seconds", "headrace_e2e_request_latency_seconds"},
    {"vllm:request_queue_time_seconds", "headrace_request_queue_time_seconds"},
    {"vllm:request_prefill_time_seconds", "headrace_request_prefill_time_seconds"},
    {"vllm:request_decode_time_seconds", "headrace_request_decode_time_seconds"},
    {"vllm:request_inference_time_seconds", "headrace_request_inference_time_seconds"},
    {"vllm:request_prompt_tokens", "headrace_request_prompt_tokens"},
    {"vllm:request_generation_tokens", "headrace_request_generation_tokens"},
    {"vllm:request_max_num_generation_tokens", "headrace_request_max_num_generation_tokens"},
    {"vllm:request_params_n", "headrace_request_params_n"},
    {"vllm:request_params_max_tokens", "headrace_request_params_max_tokens"},

    {"sglang:num_running_reqs", "headrace_requests_running"},
    {"sglang:num_queue_reqs", "headrace_requests_waiting"},
    {"sglang:num_used_tokens", "headrace_kv_cache_used_tokens"},
    {"sglang:token_usage", "headrace_kv_cache_usage_ratio"},
    {"sglang:gen_throughput", "headrace_generation_tokens_per_second"},
    {"sglang:cache_hit_rate", "headrace_prefix_cache_hit_ratio"},
    {"sglang:max_total_num_tokens", "headrace_kv_cache_tokens"},
    {"sglang:num_retracted_reqs", "headrace_recent_preemptions"},
    {"sglang:prompt_tokens_total", "headrace_prompt_tokens_total"},
    {"sglang:generation_tokens_total", "headrace_generation_tokens_total"},
    {"sglang:cached_tokens_total", "headrace_prompt_tokens_cached_total"},
    {"sglang:num_requests_total", "headrace_requests_taken_total"},
    {"sglang:num_aborted_requests_total", "headrace_requests_aborted_total"},
    {"sglang:time_to_first_token_seconds", "headrace_time_to_first_token_seconds"},
    {"sglang:inter_token_latency_seconds", "headrace_inter_token_latency_seconds"},
    {"sglang:e2e_request_latency_seconds", "headrace_e2e_request_latency_seconds"},
    {"sglang:queue_time_seconds", "headrace_request_queue_time_seconds"},

    {"llamacpp:prompt_tokens_total", "headrace_prompt_tokens_computed_total"},
    {"llamacpp:prompt_seconds_total", "headrace_prefill_seconds_total"},
    {"llamacpp:tokens_predicted_total", "headrace_generation_tokens_total"},
    {"llamacpp:tokens_predicted_seconds_total", "headrace_decode_seconds_total"},
    {"llamacpp:prompt_tokens_seconds", "headrace_prompt_tokens_per_second"},
    {"llamacpp:predicted_tokens_seconds", "headrace_generation_tokens_per_second"},
    {"llamacpp:kv_cache_usage_ratio", "headrace_kv_cache_usage_ratio"},
    {"llamacpp:kv_cache_tokens", "headrace_kv_cache_used_tokens"},
    {"llamacpp:requests_processing", "headrace_requests_running"},
    {"llamacpp:requests_deferred", "headrace_requests_waiting"},
    {"llamacpp:n_decode_total", "headrace_steps_total"},
    {"llamacpp:n_busy_slots_per_decode", "headrace_generation_tokens_per_step"},
    {"llamacpp:n_tokens_max", "headrace_longest_sequence_tokens"},
};

std::string_view type_name(MetricType type) {
  return type == kCounter ? "counter" : type == kGauge ? "gauge" : "histogram";
}

}  // namespace

std::span<const MetricRow> metric_rows() noexcept { return kRows; }
std::span<const MetricAlias> metric_aliases() noexcept { return kAliases; }

const MetricRow& metric_row(std::string_view name) noexcept {
  const auto found = std::ranges::find(kRows, name, &MetricRow::name);
  HR_CHECK(found != std::end(kRows), "no metric of that name");
  return *found;
}

std::span<const std::string_view> metric_dialects() noexcept {
  static constexpr std::string_view kDialects[] = {"vllm", "sglang", "llamacpp"};
  return kDialects;
}

std::string_view metric_dialect(std::string_view name) noexcept { return name.substr(0, name.find_first_of(":_")); }

std::string metrics_reference() {
  std::string out = "| name | type | meaning |\n|---|---|---|\n";
  for (const MetricRow& row : kRows) {
    out += cat("| `", row.name, "` | ", type_name(row.type), " | ", row.help, " |\n");
  }
  for (const std::string_view dialect : metric_dialects()) {
    out += cat("\nNames of `", dialect, "` for the metrics above:\n\n| name | ours |\n|---|---|\n");
    for (const MetricAlias& alias : kAliases) {
      if (metric_dialect(alias.name) == dialect) out += cat("| `", alias.name, "` | `", alias.own, "` |\n");
    }
  }
  return out;
}

}  // namespace headrace::server
