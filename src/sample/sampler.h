#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "headrace/sampling_params.h"
#include "headrace/token_logprobs.h"
#include "sample/logit_kernels.h"
#include "sample/sampling_state.h"

namespace headrace {

/// A token that may be drawn; `weight` is its probability times a factor that all candidates share, the best one's
/// being 1.
struct Candidate {
  TokenId token = 0;
  float weight = 0;
};

/// Chooses tokens: the state's processors, then temperature, top-k, min-p, top-p, typical-p, in this order; each sees
/// the probabilities among what those before it left, as in vLLM. Equal logits: the lower id is the better one. NaN
/// counts as -infinity.
///
/// Every machine chooses the same token. A weight is that of ops/logits.h with scale 1 / temperature: f32, our own
/// exp, 0 below e^-87. Weights are summed in double: over all tokens in blocks of kWeightBlock (ops/logits.h), blocks
/// in order; over the candidates that top-k, top-p or typical-p left, in their order. With u from philox.h the token is
/// the first whose running sum, in that order (of ids or of candidates), exceeds u times the sum.
///
/// Threading: one thread; the scratch space is shared by all sequences.
class Sampler {
 public:
  explicit Sampler(int32_t vocab_size, Isa isa = best_isa());

  /// The token at `position` (its index in the sequence), or kNoToken. logits: vocab_size floats, the model's own. Does
  /// not allocate once it has been called with the same kind of parameters, except what a grammar does.
  [[nodiscard]] TokenId sample(std::span<const float> logits, SamplingState& state, int64_t position);

  /// The tokens that sample() draws from, with their weights; the temperature is above 0. Without top-k, top-p and
  /// typical-p in order of ids, with typical-p the most typical first, else the best first. Empty where there is no
  /// token. Valid until the next call.
  [[nodiscard]] std::span<const Candidate> candidates(std::span<const float> logits, SamplingState& state);

  /// The log-probability of `token` among the model's own `logits`, and the `top` best tokens', as many as are above
  /// -infinity. The softmax's sum is that of all weights with scale 1; its logarithm and the differences are double.
  void logprobs(std::span<const float> logits, TokenId token, int32_t top, TokenLogprobs& out);

 private:
  [[nodiscard]] std::span<const float> processed(std::span<const float> logits, SamplingState& state);
  double weigh(std::span<const float> logits, float best, float scale, float least) noexcept;
  [[nodiscard]] TokenId draw_from_all(double target) const noexcept;
  [[nodiscard]] TokenId draw_from_candidates(double u) const noexcept;
  void narrow(std::span<const float> logits, float best, const SamplingParams& params);
  void take_best(std::span<const float> logits, int32_t k);
  void keep_weighty(std::span<const float> logits, double above);
  void keep_best(double wanted);
  void keep_typical(std::span<const float> logits, float best, const SamplingParams& params);

  LogitKernels kernels_;
  std::vector<float> logits_;   // after the processors
  std::vector<float> weights_;  // of all tokens
  std::vector<double> sums_;    // of the weights, a block each
  std::vector<uint64_t> keys_;  // of some tokens, see key_of
  std::vector<Candidate> candidates_;
  std::vector<std::pair<double, Candidate>> typical_;
};

}  // namespace headrace
