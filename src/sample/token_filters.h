#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "sample/logit_processor.h"

namespace headrace {

/// Only `tokens` may be chosen.
[[nodiscard]] std::unique_ptr<LogitProcessor> make_allowed_tokens(std::span<const TokenId> tokens);

/// None of `words`, sequences of tokens, may become complete: the last token of one is banned where the answer ends
/// with all before it. The prompt does not count.
[[nodiscard]] std::unique_ptr<LogitProcessor> make_bad_words(const std::vector<std::vector<TokenId>>& words);

/// `end_tokens` are banned until `min_tokens` others have been chosen.
[[nodiscard]] std::unique_ptr<LogitProcessor> make_min_tokens(int32_t min_tokens, std::vector<TokenId> end_tokens);

/// Adds to the logits of some tokens.
[[nodiscard]] std::unique_ptr<LogitProcessor> make_logit_bias(const std::map<TokenId, float>& bias);

}  // namespace headrace
