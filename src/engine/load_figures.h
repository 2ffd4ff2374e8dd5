#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

/// When a request came and when each of its tokens did, in seconds.
struct RequestTimes {
  double arrival = 0;
  int64_t prompt_tokens = 0;
  std::vector<double> tokens;
};

/// Percentiles are interpolated between neighbours, as numpy does.
struct Spread {
  double mean = 0, std = 0, median = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};
[[nodiscard]] Spread spread_of(std::vector<double> values);

/// The figures by which servers are compared, defined as by `vllm bench serve`: a request's latency runs from its
/// arrival to its last token, the duration from the first arrival to the last token of all. Seconds and tokens a
/// second.
struct LoadFigures {
  int64_t requests = 0;
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  double duration = 0;
  double request_rate = 0;  ///< requests / duration
  double output_rate = 0;   ///< output tokens / duration
  double total_rate = 0;    ///< (input + output tokens) / duration
  double peak_rate = 0;     ///< most output tokens in one whole second since the first arrival
  Spread ttft;              ///< time to the first token
  Spread itl;               ///< gaps between tokens, of all requests together
  Spread tpot;              ///< (latency - TTFT) / (tokens - 1), of requests with more than one token
  Spread e2el;              ///< latency
};
/// Of requests that are complete, each with at least one token.
[[nodiscard]] LoadFigures load_figures(std::span<const RequestTimes> requests);

}  // namespace headrace
