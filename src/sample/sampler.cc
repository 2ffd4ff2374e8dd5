#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/exact_math.h"
#include "sample/philox.h"

namespace headrace {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

double total_weight(std::span<const Candidate> candidates) noexcept {
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  return total;
}

}  // namespace

SamplingState::SamplingState(const SamplingParams& params, uint64_t seed, uint32_t continuation,
                             std::span<const TokenId> prompt)
    : params_(params), seed_(seed), continuation_(continuation) {
  if (!has_penalties()) return;
  constexpr int32_t kMostReserved = 16384;  // longer answers allocate again on the way
  counts_.reserve(prompt.size() + static_cast<size_t>(std::clamp(params.max_tokens, 0, kMostReserved)));
  for (const TokenId token : prompt) counts_.add_prompt(token);
}

bool SamplingState::has_penalties() const noexcept {
  return params_.repetition_penalty != 1.0f || params_.presence_penalty != 0.0f || params_.frequency_penalty != 0.0f;
}

void SamplingState::accept(TokenId token) {
  if (has_penalties()) counts_.add_answer(token);
}

Sampler::Sampler(int32_t vocab_size) : logits_(static_cast<size_t>(vocab_size)) {
  HR_CHECK(vocab_size > 0, "vocab_size ", vocab_size);
  candidates_.reserve(logits_.size());
}

void Sampler::apply_penalties(std::span<const float> logits, const SamplingState& state) noexcept {
  HR_CHECK(logits.size() == logits_.size(), logits.size(), " logits, expected ", logits_.size());
  for (size_t i = 0; i < logits.size(); ++i) logits_[i] = std::isnan(logits[i]) ? kMinusInfinity : logits[i];
  if (!state.has_penalties()) return;
  const SamplingParams& params = state.params();
  state.counts().for_each([&](const TokenCounts::Entry& entry) {
    const auto id = static_cast<size_t>(entry.token);
    if (id >= logits_.size()) return;
    float& logit = logits_[id];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (entry.in_answer > 0) {
      logit -= params.frequency_penalty * static_cast<float>(entry.in_answer);
      logit -= params.presence_penalty;
    }
  });
}

/// Ids break ties, so no two are equal and any algorithm that selects or sorts gives the same.
bool Sampler::better(TokenId a, TokenId b) const noexcept {
  const float x = logits_[static_cast<size_t>(a)];
  const float y = logits_[static_cast<size_t>(b)];
  return x != y ? x > y : a < b;
}

/// The k best tokens, the best first; k is less than the vocabulary. One pass with a heap whose top is the worst kept.
void Sampler::take_top_k(size_t k) noexcept {
  const auto is_better = [this](const Candidate& a, const Candidate& b) { return better(a.token, b.token); };
  candidates_.clear();
  for (size_t i = 0; i < k; ++i) candidates_.push_back({.token = static_cast<TokenId>(i)});
  std::ranges::make_heap(candidates_, is_better);
  for (size_t i = k; i < logits_.size(); ++i) {
    // Of equal logits the one with the lower id is in already.
    if (logits_[i] <= logits_[static_cast<size_t>(candidates_.front().token)]) continue;
    std::ranges::pop_heap(candidates_, is_better);
    candidates_.back().token = static_cast<TokenId>(i);
    std::ranges::push_heap(candidates_, is_better);
  }
  std::ranges::sort_heap(candidates_, is_better);
}

/// Sets the weights of the candidates and drops those below min_p.
void Sampler::weigh(float best, const SamplingParams& params) noexcept {
  // Below this share of the best one's weight even a vocabulary of 2^20 such tokens has less than 2^-60 of the
  // probability, beyond the resolution of the random number.
  constexpr double kLeastLogWeight = -60;
  const auto temperature = static_cast<double>(params.temperature);
  std::erase_if(candidates_, [&](Candidate& candidate) {
    const float logit = logits_[static_cast<size_t>(candidate.token)];
    // The difference of two infinities would be NaN.
    const double below = logit == best ? 0 : static_cast<double>(logit) - static_cast<double>(best);
    const double log_weight = below / temperature;
    if (log_weight < kLeastLogWeight) return true;
    candidate.weight = exact_exp(log_weight);
    return candidate.weight < static_cast<double>(params.min_p);
  });
}

/// The best candidates whose weights reach p of all together, the best first.
void Sampler::keep_top_p(double p) noexcept {
  const double total = total_weight(candidates_);
  const double wanted = p * total;
  // Tokens that each have less than (1 - p) / n of the probability have less than 1 - p together: none of them is
  // needed to reach p. What is left is short, so it may be sorted. (Half of the bound, far above the roundings.)
  const double least = 0.5 * (1 - p) * total / static_cast<double>(candidates_.size());
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.weight < least; });
  std::ranges::sort(candidates_, [this](const Candidate& a, const Candidate& b) { return better(a.token, b.token); });
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && (kept == 0 || sum < wanted)) sum += candidates_[kept++].weight;
  candidates_.resize(kept);
}

std::span<const Candidate> Sampler::candidates(std::span<const float> logits, const SamplingState& state) noexcept {
  const SamplingParams& params = state.params();
  HR_CHECK(params.temperature > 0, "greedy draws from no candidates");
  apply_penalties(logits, state);
  const float best = *std::ranges::max_element(logits_);
  candidates_.clear();
  if (best == kMinusInfinity) {
    candidates_.push_back({.token = 0, .weight = 1});
    return candidates_;
  }
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < logits_.size()) {
    take_top_k(static_cast<size_t>(params.top_k));
  } else {
    for (size_t i = 0; i < logits_.size(); ++i) candidates_.push_back({.token = static_cast<TokenId>(i)});
  }
  weigh(best, params);
  if (params.top_p < 1) keep_top_p(static_cast<double>(params.top_p));
  return candidates_;
}

TokenId Sampler::sample(std::span<const float> logits, const SamplingState& state, int64_t position) noexcept {
  if (state.params().temperature <= 0) {
    apply_penalties(logits, state);
    // max_element returns the first of equals.
    return static_cast<TokenId>(std::ranges::max_element(logits_) - logits_.begin());
  }
  const std::span<const Candidate> choices = candidates(logits, state);
  const double target = uniform_at(state.seed(), state.continuation(), position) * total_weight(choices);
  double sum = 0;
  for (const Candidate& choice : choices) {
    sum += choice.weight;
    if (target < sum) return choice.token;
  }
  return choices.back().token;  // target is below the sum, but its product may have been rounded up to it
}

}  // namespace headrace
