#pragma once

#include <string>
#include <utility>

#include "sample/logit_processor.h"
#include "sample/token_mask.h"
#include "text/grammar.h"

namespace headrace {

/// Only tokens that keep the answer inside a grammar may be chosen; none at all once the grammar has failed. The mask
/// is made by prepare().
class GrammarProcessor final : public LogitProcessor {
 public:
  explicit GrammarProcessor(GrammarMatcher matcher)
      : matcher_(std::move(matcher)), mask_((static_cast<size_t>(matcher_.vocab_size()) + 31) / 32) {}

  [[nodiscard]] std::unique_ptr<LogitProcessor> clone() const override {
    return std::make_unique<GrammarProcessor>(*this);
  }
  void prepare() override;
  void apply(std::span<float> logits) override;
  void accept(TokenId token) override;

  /// Whether the answer is complete, so that nothing but an end token may follow.
  [[nodiscard]] bool is_finished() const noexcept { return matcher_.is_finished(); }
  /// Why the grammar cannot go on; empty while it can.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

 private:
  GrammarMatcher matcher_;
  TokenMask mask_;
  bool is_prepared_ = false;
  std::string failure_;
};

}  // namespace headrace
