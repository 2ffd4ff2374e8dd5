#include "sample/grammar_processor.h"

#include <algorithm>

#include "base/cat.h"

namespace headrace {

void GrammarProcessor::prepare() {
  if (is_prepared_) return;
  is_prepared_ = true;
  if (failure_.empty()) matcher_.compute_mask(mask_);
  if (failure_.empty()) failure_ = matcher_.failure();
  if (!failure_.empty()) std::ranges::fill(mask_, 0u);
}

void GrammarProcessor::apply(std::span<float> logits) {
  prepare();
  keep_only(mask_, logits);
}

void GrammarProcessor::accept(TokenId token) {
  is_prepared_ = false;
  if (matcher_.accept(token) || !failure_.empty()) return;
  failure_ = matcher_.failure().empty() ? cat("grammar: token ", token, " does not go on with it") : matcher_.failure();
}

}  // namespace headrace
