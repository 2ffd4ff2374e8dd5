#include "sample/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"
#include "base/exact_math.h"
#include "sample/philox.h"

namespace headrace {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

float scale_of(const SamplingParams& params) noexcept { return 1.0f / params.temperature; }

bool takes_top_k(const SamplingParams& params, size_t vocab_size) noexcept {
  return params.top_k > 0 && static_cast<size_t>(params.top_k) < vocab_size;
}

/// Whether only some tokens are drawn from, beyond what a least weight says.
bool narrows(const SamplingParams& params, size_t vocab_size) noexcept {
  return takes_top_k(params, vocab_size) || params.top_p < 1 || params.typical_p < 1;
}

/// A number that is the greater the better the token: the higher logit, then the lower id.
uint64_t key_of(float logit, TokenId token) noexcept {
  const auto bits = std::bit_cast<uint32_t>(logit + 0.0f);  // -0 is no worse than 0
  const uint32_t rising = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{rising} << 32 | ~static_cast<uint32_t>(token);
}

TokenId token_of(uint64_t key) noexcept { return static_cast<TokenId>(~static_cast<uint32_t>(key)); }

double total_weight(std::span<const Candidate> candidates) noexcept {
  double total = 0;
  for (const Candidate& candidate : candidates) total += static_cast<double>(candidate.weight);
  return total;
}

/// How many of the first candidates have `wanted` together.
size_t count_to(std::span<const Candidate> candidates, double wanted) noexcept {
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates.size() && (kept == 0 || sum < wanted)) sum += static_cast<double>(candidates[kept++].weight);
  return kept;
}

}  // namespace

Sampler::Sampler(int32_t vocab_size, Isa isa)
    : kernels_(choose_logit_kernels(isa)), logits_(static_cast<size_t>(vocab_size)) {
  HR_CHECK(vocab_size > 0, "vocab_size ", vocab_size);
  weights_.resize(logits_.size());
  sums_.resize(static_cast<size_t>((vocab_size + kWeightBlock - 1) / kWeightBlock));
  keys_.reserve(logits_.size());
  candidates_.reserve(logits_.size());
}

std::span<const float> Sampler::processed(std::span<const float> logits, SamplingState& state) {
  HR_CHECK(logits.size() == logits_.size(), logits.size(), " logits, expected ", logits_.size());
  if (!state.has_processors()) return logits;
  std::ranges::copy(logits, logits_.begin());
  state.apply(logits_);
  return logits_;
}

/// Sets the weights of all tokens; returns their sum.
double Sampler::weigh(std::span<const float> logits, float best, float scale, float least) noexcept {
  kernels_.weights({.x = logits.data(),
                    .n = static_cast<int64_t>(logits.size()),
                    .best = best,
                    .scale = scale,
                    .least = least,
                    .w = weights_.data(),
                    .sums = sums_.data()});
  double total = 0;
  for (const double sum : sums_) total += sum;
  return total;
}

TokenId Sampler::draw_from_all(double target) const noexcept {
  // What rounding leaves over, of the target or of a block's own sum, goes to the last token with a weight.
  size_t last_block = sums_.size() - 1;
  while (last_block > 0 && sums_[last_block] == 0) --last_block;
  size_t block = 0;
  double sum = 0;
  while (block < last_block && target >= sum + sums_[block]) sum += sums_[block++];
  const size_t begin = block * static_cast<size_t>(kWeightBlock);
  const size_t end = std::min(begin + static_cast<size_t>(kWeightBlock), weights_.size());
  TokenId token = kNoToken;
  for (size_t i = begin; i < end && !(token >= 0 && target < sum); ++i) {
    if (weights_[i] == 0) continue;
    token = static_cast<TokenId>(i);
    sum += static_cast<double>(weights_[i]);
  }
  return token;
}

TokenId Sampler::draw_from_candidates(double u) const noexcept {
  const double target = u * total_weight(candidates_);
  double sum = 0;
  for (const Candidate& candidate : candidates_) {
    sum += static_cast<double>(candidate.weight);
    if (target < sum) return candidate.token;
  }
  return candidates_.back().token;  // target is below the sum, but its product may have been rounded up to it
}

/// keys_: those of the k best tokens, the best first. One pass with a heap whose top is the worst kept.
void Sampler::take_best(std::span<const float> logits, int32_t k) {
  keys_.clear();
  if (k <= 0) return;
  const auto size = static_cast<int64_t>(logits.size());
  float threshold = kMinusInfinity;
  for (int64_t i = 0; i < size; ++i) {
    // Of equal logits the one with the lower id is in already.
    i = kernels_.next_above({.x = logits.data(), .begin = i, .end = size, .threshold = threshold});
    if (i == size) break;
    if (keys_.size() == static_cast<size_t>(k)) {
      std::ranges::pop_heap(keys_, std::greater{});
      keys_.pop_back();
    }
    keys_.push_back(key_of(logits[static_cast<size_t>(i)], static_cast<TokenId>(i)));
    std::ranges::push_heap(keys_, std::greater{});
    if (keys_.size() == static_cast<size_t>(k)) threshold = logits[static_cast<size_t>(token_of(keys_.front()))];
  }
  std::ranges::sort_heap(keys_, std::greater{});
}

/// keys_: those of all tokens with a weight above one, as a heap with the best on top.
void Sampler::keep_weighty(std::span<const float> logits, double above) {
  const auto least = static_cast<float>(above);
  const auto size = static_cast<int64_t>(weights_.size());
  keys_.clear();
  for (int64_t i = 0; i < size; ++i) {
    i = kernels_.next_above({.x = weights_.data(), .begin = i, .end = size, .threshold = least});
    for (; i < size && weights_[static_cast<size_t>(i)] > least; ++i) {
      keys_.push_back(key_of(logits[static_cast<size_t>(i)], static_cast<TokenId>(i)));
    }
  }
  std::ranges::make_heap(keys_);
}

/// Moves the best tokens from the heap of keys to the candidates until these have `wanted` together.
void Sampler::keep_best(double wanted) {
  double sum = 0;
  while (!keys_.empty() && (candidates_.empty() || sum < wanted)) {
    std::ranges::pop_heap(keys_);
    const TokenId token = token_of(keys_.back());
    keys_.pop_back();
    candidates_.push_back({.token = token, .weight = weights_[static_cast<size_t>(token)]});
    sum += static_cast<double>(candidates_.back().weight);
  }
}

/// Orders the candidates by how far their surprise, -log p, is from the expected one, and keeps the first whose weights
/// reach typical_p of all.
void Sampler::keep_typical(std::span<const float> logits, float best, const SamplingParams& params) {
  const double total = total_weight(candidates_);
  const double log_total = exact_log(total);
  const auto surprise = [&](const Candidate& c) {
    const float logit = logits[static_cast<size_t>(c.token)];
    return logit == best ? log_total : log_total - static_cast<double>((logit - best) * scale_of(params));
  };
  double entropy = 0;
  for (const Candidate& c : candidates_) entropy += static_cast<double>(c.weight) / total * surprise(c);
  typical_.clear();
  for (const Candidate& c : candidates_) typical_.emplace_back(std::fabs(surprise(c) - entropy), c);
  std::ranges::sort(typical_, [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    const auto key = [&](const Candidate& c) { return key_of(logits[static_cast<size_t>(c.token)], c.token); };
    return key(a.second) > key(b.second);
  });
  candidates_.clear();
  for (const auto& [distance, candidate] : typical_) candidates_.push_back(candidate);
  candidates_.resize(count_to(candidates_, static_cast<double>(params.typical_p) * total));
}

/// The candidates that top-k, min-p, top-p and typical-p leave.
void Sampler::narrow(std::span<const float> logits, float best, const SamplingParams& params) {
  const float scale = scale_of(params);
  const auto top_p = static_cast<double>(params.top_p);
  candidates_.clear();
  if (takes_top_k(params, logits.size())) {
    take_best(logits, params.top_k);
    for (const uint64_t key : keys_) {
      const TokenId token = token_of(key);
      const float weight = logit_weight(logits[static_cast<size_t>(token)], best, scale, params.min_p);
      if (weight > 0) candidates_.push_back({.token = token, .weight = weight});
    }
    if (top_p < 1) candidates_.resize(count_to(candidates_, top_p * total_weight(candidates_)));
  } else {
    const double total = weigh(logits, best, scale, params.min_p);
    // Tokens that each have less than (1 - p) / n of the probability have less than 1 - p together: none of them is
    // needed to reach p. What is left is short. (Half of the bound, far above the roundings.)
    const bool takes_all = top_p >= 1;
    keep_weighty(logits, takes_all ? 0 : 0.5 * (1 - top_p) * total / static_cast<double>(logits.size()));
    keep_best(takes_all ? std::numeric_limits<double>::infinity() : top_p * total);
  }
  if (params.typical_p < 1) keep_typical(logits, best, params);
}

std::span<const Candidate> Sampler::candidates(std::span<const float> raw, SamplingState& state) {
  const SamplingParams& params = state.params();
  HR_CHECK(params.temperature > 0, "greedy draws from no candidates");
  const std::span<const float> logits = processed(raw, state);
  const int64_t best = kernels_.arg_max({.x = logits.data(), .n = static_cast<int64_t>(logits.size())});
  candidates_.clear();
  if (best < 0) return candidates_;
  if (narrows(params, logits.size())) {
    narrow(logits, logits[static_cast<size_t>(best)], params);
    return candidates_;
  }
  weigh(logits, logits[static_cast<size_t>(best)], scale_of(params), params.min_p);
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] > 0) candidates_.push_back({.token = static_cast<TokenId>(i), .weight = weights_[i]});
  }
  return candidates_;
}

TokenId Sampler::sample(std::span<const float> raw, SamplingState& state, int64_t position) {
  const SamplingParams& params = state.params();
  const std::span<const float> logits = processed(raw, state);
  const int64_t best = kernels_.arg_max({.x = logits.data(), .n = static_cast<int64_t>(logits.size())});
  if (best < 0) return kNoToken;
  if (params.temperature <= 0) return static_cast<TokenId>(best);
  const double u = uniform_at(state.seed(), state.continuation(), position);
  const float best_logit = logits[static_cast<size_t>(best)];
  if (narrows(params, logits.size())) {
    narrow(logits, best_logit, params);
    return draw_from_candidates(u);
  }
  return draw_from_all(u * weigh(logits, best_logit, scale_of(params), params.min_p));
}

void Sampler::logprobs(std::span<const float> logits, TokenId token, int32_t top, TokenLogprobs& out) {
  HR_CHECK(logits.size() == logits_.size(), logits.size(), " logits, expected ", logits_.size());
  HR_CHECK(token >= 0 && static_cast<size_t>(token) < logits.size(), "token ", token);
  const auto logit_of = [&](TokenId t) {
    const float logit = logits[static_cast<size_t>(t)];
    return std::isnan(logit) ? kMinusInfinity : logit;
  };
  const int64_t best_token = kernels_.arg_max({.x = logits.data(), .n = static_cast<int64_t>(logits.size())});
  const float best = best_token < 0 ? kMinusInfinity : logit_of(static_cast<TokenId>(best_token));
  const double log_total = best_token < 0 ? 0 : exact_log(weigh(logits, best, 1, 0));
  const auto logprob_of = [&](TokenId t) {
    const float logit = logit_of(t);
    if (logit == kMinusInfinity) return kMinusInfinity;
    const double below = logit == best ? 0 : static_cast<double>(logit) - static_cast<double>(best);
    return static_cast<float>(below - log_total);
  };
  int32_t rank = 1;
  const float chosen = logit_of(token);
  for (size_t i = 0; i < logits.size(); ++i) rank += logits[i] > chosen ? 1 : 0;
  for (TokenId t = 0; t < token; ++t) rank += logit_of(t) == chosen ? 1 : 0;
  out.chosen = {.token = token, .logprob = logprob_of(token), .rank = rank};
  out.top.clear();
  take_best(logits, top);
  for (const uint64_t key : keys_) {
    const TokenId t = token_of(key);
    out.top.push_back({.token = t, .logprob = logprob_of(t), .rank = static_cast<int32_t>(out.top.size()) + 1});
  }
}

}  // namespace headrace
