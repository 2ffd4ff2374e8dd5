#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/ids.h"
#include "headrace/sampling_params.h"
#include "sample/logit_processor.h"
#include "sample/output_gate.h"
#include "text/grammar.h"

namespace headrace {

class GrammarProcessor;

/// What the choice of one continuation's tokens depends on: its parameters, its generator's key, and what its tokens so
/// far have left in its processors. A copy goes its own way. Threading: one thread at a time; see LogitProcessor for
/// prepare().
///
/// For each token: prepare() while the model computes, Sampler::sample(), accept(). A sequence that is computed again
/// (preemption, a lost stage) keeps its state.
class SamplingState {
 public:
  /// `params` have been checked. `seed` stands in for params.seed, which may be absent. `continuation`: its index among
  /// those of one request. `end_tokens`: those that end a text, which params.min_tokens holds back. `grammar`: made
  /// from params.structured_output, if that asks for one; it binds from `gate` on, or from the beginning.
  SamplingState(const SamplingParams& params, uint64_t seed, uint32_t continuation, std::span<const TokenId> prompt,
                std::span<const TokenId> end_tokens = {}, std::optional<GrammarMatcher> grammar = {},
                std::optional<OutputGate> gate = {});
  SamplingState(const SamplingState& other);
  SamplingState& operator=(const SamplingState& other) { return *this = SamplingState(other); }
  SamplingState(SamplingState&&) noexcept;
  SamplingState& operator=(SamplingState&&) noexcept;
  ~SamplingState();

  /// The same state as another continuation: its next tokens are drawn with that index.
  [[nodiscard]] SamplingState fork(uint32_t continuation) const;

  /// One more processor, applied after those that the parameters ask for.
  void add(std::unique_ptr<LogitProcessor> processor) { others_.add(std::move(processor)); }

  /// What can be done before the logits are there: the grammar's mask.
  void prepare();
  /// A token of the answer.
  void accept(TokenId token);

  /// Whether a grammar has a say about the next token, so that prepare() has work.
  [[nodiscard]] bool has_grammar() const noexcept;
  [[nodiscard]] bool has_processors() const noexcept;
  /// Grammar, allowed tokens, bad words, min_tokens, bias, penalties, and those that were added: vLLM's order.
  void apply(std::span<float> logits);

  /// Whether the grammar's text is complete: the answer ends here.
  [[nodiscard]] bool is_finished() const noexcept;
  /// Why no token can be chosen any more; empty while one can.
  [[nodiscard]] std::string failure() const;
  /// Whether the answer is as long as min_tokens asks: only then stop texts count.
  [[nodiscard]] bool may_stop() const noexcept { return num_accepted_ >= params_.min_tokens; }

  [[nodiscard]] const SamplingParams& params() const noexcept { return params_; }
  [[nodiscard]] uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] uint32_t continuation() const noexcept { return continuation_; }
  [[nodiscard]] int32_t num_accepted() const noexcept { return num_accepted_; }

 private:
  SamplingParams params_;
  uint64_t seed_;
  uint32_t continuation_;
  int32_t num_accepted_ = 0;
  std::unique_ptr<GrammarProcessor> grammar_;  // null: any text
  LogitProcessors others_;
};

}  // namespace headrace
