#include "server/request_figures.h"

namespace headrace::server {
namespace {

// The buckets of vLLM: dashboards compare servers by them.
using Buckets = prometheus::Histogram::BucketBoundaries;
Buckets first_token_buckets() {
  return {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560};
}
Buckets token_gap_buckets() {
  return {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80};
}
Buckets latency_buckets() {
  return {.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
}
Buckets length_buckets() {
  Buckets buckets;
  for (double power = 1; power <= 1e6; power *= 10) {
    for (const double digit : {1, 2, 5}) buckets.push_back(digit * power);
  }
  return buckets;
}
Buckets choices_buckets() { return {1, 2, 5, 10, 20}; }

Buckets buckets_of(RequestHistogram which) {
  switch (which) {
    case RequestHistogram::kTimeToFirstToken:
      return first_token_buckets();
    case RequestHistogram::kInterTokenLatency:
    case RequestHistogram::kTimePerOutputToken:
      return token_gap_buckets();
    case RequestHistogram::kEndToEnd:
    case RequestHistogram::kQueue:
    case RequestHistogram::kPrefill:
    case RequestHistogram::kDecode:
    case RequestHistogram::kInference:
      return latency_buckets();
    case RequestHistogram::kPromptTokens:
    case RequestHistogram::kGenerationTokens:
    case RequestHistogram::kMaxGenerationTokens:
    case RequestHistogram::kParamMaxTokens:
      return length_buckets();
    case RequestHistogram::kParamN:
      return choices_buckets();
  }
  return {};
}

}  // namespace

bool counts_tokens(RequestHistogram which) noexcept {
  return which == RequestHistogram::kPromptTokens || which == RequestHistogram::kGenerationTokens ||
         which == RequestHistogram::kMaxGenerationTokens || which == RequestHistogram::kParamMaxTokens;
}

RequestFigures::RequestFigures() {
  for (size_t i = 0; i < kNumRequestHistograms; ++i) {
    histograms_.emplace_back(buckets_of(static_cast<RequestHistogram>(i)));
  }
}

prometheus::ClientMetric::Histogram RequestFigures::collect(RequestHistogram which) const {
  return histograms_[static_cast<size_t>(which)].Collect().histogram;
}

void RequestFigures::saw_sequence(int64_t tokens) noexcept {
  int64_t longest = longest_sequence_;
  while (tokens > longest && !longest_sequence_.compare_exchange_weak(longest, tokens)) {
  }
}

}  // namespace headrace::server
