#pragma once

#include <span>
#include <vector>

#include "client/request_record.h"

namespace headrace::client {

/// What a user is promised by the rule of DeepSpeed-FastGen (arXiv:2401.08671, and MII's benchmark scripts): the prompt
/// is read at least at `prompt_rate` tokens a second, and the answer comes at least at `answer_rate`.
struct PaceRule {
  double prompt_rate = 512;
  double answer_rate = 4;
  double ema_span = 16;
};

/// Exponential moving averages after each value, weights corrected for the short beginning, alpha = 2 / (span + 1):
/// e_k = sum_j (1 - alpha)^j v_(k-j) / sum_j (1 - alpha)^j, j = 0 to k - 1; what pandas gives for ewm(span).mean().
[[nodiscard]] std::vector<double> moving_averages(std::span<const double> values, double span);

/// Gaps between the tokens of a request.
[[nodiscard]] std::vector<double> token_gaps(const RequestRecord& record);

/// Whether the first token came in prompt tokens / prompt_rate, and
/// by averages: every moving average of the later gaps is below 1 / answer_rate;
/// by sums: no k gaps take together longer than k / answer_rate.
[[nodiscard]] bool keeps_pace_by_averages(const RequestRecord& record, const PaceRule& rule);
[[nodiscard]] bool keeps_pace_by_sums(const RequestRecord& record, const PaceRule& rule);

/// Requests a second that keep the pace.
struct EffectiveThroughput {
  double answer_rate = 0;
  double good_ratio = 0;  ///< of all that were sent
  double rate = 0;        ///< good requests / (last end - first start)
};
struct PaceFigures {
  std::vector<EffectiveThroughput> by_averages, by_sums;  ///< for 1, 2, 3, 4, 6 and 8 tokens a second
};
/// Requests that failed or broke off keep no pace; those that the client gave up do not count.
[[nodiscard]] PaceFigures pace_figures(std::span<const RequestRecord> records);

}  // namespace headrace::client
