#pragma once

#include <optional>
#include <string>
#include <utility>

#include "sample/logit_processor.h"
#include "sample/output_gate.h"
#include "sample/token_mask.h"
#include "text/grammar.h"

namespace headrace {

/// Only tokens that keep the answer inside a grammar may be chosen; none at all once the grammar has failed. The mask
/// is made by prepare(). Before the structured output begins the grammar costs nothing.
class GrammarProcessor final : public LogitProcessor {
 public:
  /// `gate`: where the grammar begins; absent: at once.
  explicit GrammarProcessor(GrammarMatcher matcher, std::optional<OutputGate> gate = {})
      : matcher_(std::move(matcher)),
        gate_(std::move(gate)),
        mask_((static_cast<size_t>(matcher_.vocab_size()) + 31) / 32) {}

  [[nodiscard]] std::unique_ptr<LogitProcessor> clone() const override {
    return std::make_unique<GrammarProcessor>(*this);
  }
  void prepare() override;
  void apply(std::span<float> logits) override;
  void accept(TokenId token) override;

  /// Whether it changes the logits of the next token at all.
  [[nodiscard]] bool is_active() const noexcept { return binds() || !gate_->banned_tokens().empty(); }
  /// Whether the grammar has a say about the next token.
  [[nodiscard]] bool binds() const noexcept { return !gate_ || gate_->may_begin(); }
  /// Whether the answer is complete, so that nothing but an end token may follow.
  [[nodiscard]] bool is_finished() const noexcept { return !gate_ && matcher_.is_finished(); }
  /// Why the grammar cannot go on; empty while it can.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

 private:
  void pass_gate(TokenId token);

  GrammarMatcher matcher_;
  std::optional<OutputGate> gate_;  // absent: the structured output has begun
  TokenMask mask_;
  bool is_prepared_ = false;
  std::string failure_;
};

}  // namespace headrace
