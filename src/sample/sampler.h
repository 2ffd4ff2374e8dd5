#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "headrace/sampling_params.h"
#include "sample/token_counts.h"

namespace headrace {

/// What the choice of one continuation's tokens depends on: its parameters, its generator's key, and the tokens so far.
class SamplingState {
 public:
  /// `params` have been checked. `seed` stands in for params.seed, which may be absent. `continuation`: its index among
  /// those of one request.
  SamplingState(const SamplingParams& params, uint64_t seed, uint32_t continuation, std::span<const TokenId> prompt);

  /// A token of the answer.
  void accept(TokenId token);

  [[nodiscard]] const SamplingParams& params() const noexcept { return params_; }
  [[nodiscard]] uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] uint32_t continuation() const noexcept { return continuation_; }
  [[nodiscard]] const TokenCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] bool has_penalties() const noexcept;

 private:
  SamplingParams params_;
  uint64_t seed_;
  uint32_t continuation_;
  TokenCounts counts_;  // stays empty without penalties
};

/// A token that may be drawn; `weight` is its probability times a factor that all candidates share, the best one's
/// being 1.
struct Candidate {
  TokenId token = 0;
  double weight = 0;
};

/// Chooses tokens: penalties, temperature, top-k, min-p, top-p, in this order; top-p sees the
/// probabilities among what the others left, as in vLLM. All arithmetic is IEEE float and double in a fixed order with
/// our own exp: every machine chooses the same token. Equal logits: the lower id is the better one. NaN counts as
/// -infinity. Tokens of less than e^-60 of the best one's weight are left out. Threading: one thread; the scratch space
/// is shared by all sequences.
class Sampler {
 public:
  explicit Sampler(int32_t vocab_size);

  /// The token at `position` (its index in the sequence). logits: vocab_size floats. Token 0 if none is above
  /// -infinity. Does not allocate once it has been called with the same kind of parameters.
  [[nodiscard]] TokenId sample(std::span<const float> logits, const SamplingState& state, int64_t position) noexcept;

  /// The tokens that sample() draws from, with their weights; the temperature is above 0. Never empty. Without
  /// top-k and top-p in order of ids, else the best first. Valid until the next call.
  [[nodiscard]] std::span<const Candidate> candidates(std::span<const float> logits,
                                                      const SamplingState& state) noexcept;

 private:
  void apply_penalties(std::span<const float> logits, const SamplingState& state) noexcept;
  void take_top_k(size_t k) noexcept;
  void weigh(float best, const SamplingParams& params) noexcept;
  void keep_top_p(double p) noexcept;
  [[nodiscard]] bool better(TokenId a, TokenId b) const noexcept;

  std::vector<float> logits_;  // after penalties, no NaN
  std::vector<Candidate> candidates_;
};

}  // namespace headrace
