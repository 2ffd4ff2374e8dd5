#include "sample/grammar_processor.h"

#include <algorithm>
#include <limits>

#include "base/cat.h"

namespace headrace {

void GrammarProcessor::prepare() {
  if (is_prepared_ || !binds()) return;
  is_prepared_ = true;
  if (failure_.empty()) matcher_.compute_mask(mask_);
  if (failure_.empty()) failure_ = matcher_.failure();
  if (!failure_.empty()) std::ranges::fill(mask_, 0u);
  if (gate_) add_token(mask_, gate_->reasoning_token());
}

void GrammarProcessor::apply(std::span<float> logits) {
  if (!binds()) {
    for (const TokenId token : gate_->banned_tokens()) {
      if (static_cast<size_t>(token) < logits.size()) {
        logits[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
      }
    }
    return;
  }
  prepare();
  keep_only(mask_, logits);
}

void GrammarProcessor::pass_gate(TokenId token) {
  const OutputGate::Passed passed = gate_->accept(token);
  if (!passed.begins) return;
  const auto takes = [&](GrammarMatcher& matcher) {
    return (passed.token == kNoToken || matcher.accept(passed.token)) &&
           (passed.text.empty() || matcher.accept_text(passed.text));
  };
  GrammarMatcher begun = matcher_;
  if (takes(begun)) {
    matcher_ = std::move(begun);
    gate_.reset();
  } else if (gate_->must_begin()) {
    gate_.reset();  // what came with the end of the reasoning is text before the structured output
  }
}

void GrammarProcessor::accept(TokenId token) {
  is_prepared_ = false;
  if (gate_) {
    if (!gate_->may_begin() || token == gate_->reasoning_token()) return pass_gate(token);
    gate_.reset();
  }
  if (matcher_.accept(token) || !failure_.empty()) return;
  failure_ = matcher_.failure().empty() ? cat("grammar: token ", token, " does not go on with it") : matcher_.failure();
}

}  // namespace headrace
