#pragma once

#include <prometheus/histogram.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>

#include "server/outcome.h"

namespace headrace::server {

/// What is measured of each request.
enum class RequestHistogram : uint8_t {
  kTimeToFirstToken,
  kInterTokenLatency,
  kTimePerOutputToken,
  kEndToEnd,
  kQueue,
  kPrefill,
  kDecode,
  kInference,
  kPromptTokens,
  kGenerationTokens,
  kMaxGenerationTokens,
  kParamN,
  kParamMaxTokens,
};
constexpr size_t kNumRequestHistograms = 13;
/// Whether its buckets end at the longest sequence that the model takes.
[[nodiscard]] bool counts_tokens(RequestHistogram which) noexcept;

/// Histograms and counts of requests, since the start of the server. Threading: every function from any thread.
class RequestFigures {
 public:
  RequestFigures();

  void observe(RequestHistogram which, double value) { histograms_[static_cast<size_t>(which)].Observe(value); }
  [[nodiscard]] prometheus::ClientMetric::Histogram collect(RequestHistogram which) const;

  void count(Outcome outcome) noexcept { ++outcomes_[static_cast<size_t>(outcome)]; }
  [[nodiscard]] int64_t count_of(Outcome outcome) const noexcept { return outcomes_[static_cast<size_t>(outcome)]; }
  void count(Rejection rejection) noexcept { ++rejections_[static_cast<size_t>(rejection)]; }
  [[nodiscard]] int64_t count_of(Rejection rejection) const noexcept {
    return rejections_[static_cast<size_t>(rejection)];
  }

  /// Prompt and answer of one request.
  void saw_sequence(int64_t tokens) noexcept;
  [[nodiscard]] int64_t longest_sequence() const noexcept { return longest_sequence_; }

 private:
  std::deque<prometheus::Histogram> histograms_;  // they do not move
  std::array<std::atomic<int64_t>, kNumOutcomes> outcomes_{};
  std::array<std::atomic<int64_t>, kNumRejections> rejections_{};
  std::atomic<int64_t> longest_sequence_ = 0;
};

}  // namespace headrace::server
