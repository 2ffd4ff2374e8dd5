#include "text/detokenizer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "text/replace_invalid.h"

namespace headrace {

StreamDetokenizer::StreamDetokenizer(const Tokenizer& tokenizer, DetokenizeOptions options)
    : tokenizer_(&tokenizer),
      options_(std::move(options)),
      drop_space_(tokenizer.strips_first_space() && !options_.continues_text) {}

std::string StreamDetokenizer::push(TokenId id) {
  if (options_.skip_special && tokenizer_->is_special(id) &&
      std::ranges::find(options_.shown_special, id) == options_.shown_special.end()) {
    return {};
  }
  std::string_view bytes = tokenizer_->token_bytes(id);
  if (bytes.empty()) return {};
  if (std::exchange(drop_space_, false) && bytes.front() == ' ') bytes.remove_prefix(1);
  pending_ += bytes;
  const size_t held = utf8_incomplete_tail(pending_);
  std::string text = replace_invalid_utf8(std::string_view(pending_).substr(0, pending_.size() - held));
  pending_.erase(0, pending_.size() - held);
  return text;
}

std::string StreamDetokenizer::finish() {
  drop_space_ = tokenizer_->strips_first_space() && !options_.continues_text;
  return replace_invalid_utf8(std::exchange(pending_, {}));
}

}  // namespace headrace
