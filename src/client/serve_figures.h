#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/goodput_limits.h"
#include "client/load_run.h"
#include "client/token_pace.h"
#include "engine/load_figures.h"

namespace headrace::client {

/// Latencies of one request, in seconds; definitions as in ServeFigures.
struct RequestLatencies {
  double ttft = 0, e2el = 0;
  std::optional<double> first_text, tpot, tpot_with_first;
};
[[nodiscard]] RequestLatencies latencies_of(const RequestRecord& record);

/// Whether a request that was completed is within the limits; the TPOT of a single token is 0.
[[nodiscard]] bool is_good(const RequestRecord& record, const GoodputLimits& limits);

/// The figures of one run (docs/benchmarking.md says what each means and where its definition comes from). Times in
/// seconds, of requests that were completed; rates over the whole duration, failed requests included.
struct ServeFigures {
  int64_t completed = 0, failed = 0, incomplete = 0, cancelled = 0, not_sent = 0;
  double duration = 0;
  int64_t max_concurrency = 0;
  int64_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;
  double request_rate = 0;          ///< completed / duration
  std::optional<double> loop_rate;  ///< clients / mean latency, of a closed loop
  double output_rate = 0;           ///< output tokens / duration
  double total_rate = 0;            ///< (input + output tokens) / duration
  double peak_output_rate = 0;      ///< most output tokens in one whole second since the start
  double mean_concurrency = 0;      ///< sum of latencies / duration
  int64_t most_concurrent = 0;
  std::optional<double> goodput;  ///< good requests / duration
  Spread ttft;                    ///< until the first event with a choice
  Spread first_text;              ///< until the first text
  Spread itl;                     ///< gaps between events with a token, all requests pooled
  Spread tpot;                    ///< (E2EL - TTFT) / (tokens - 1), where there is more than one token
  Spread tpot_with_first;         ///< E2EL / tokens
  Spread e2el;                    ///< until the last event with a choice
  PaceFigures pace;
  Spread send_lag;   ///< from when a request was due to when it was sent: the client's own slowness
  Spread held_back;  ///< from when the plan has a request to when one of the clients is free for it
  double cpu_seconds = 0;
  double cpu_share = 0;      ///< of one processor
  double cpu_per_token = 0;  ///< seconds
  double longest_turn = 0;
  std::vector<std::string> warnings;
};
[[nodiscard]] ServeFigures serve_figures(const LoadRun& run, const GoodputLimits& limits);

}  // namespace headrace::client
