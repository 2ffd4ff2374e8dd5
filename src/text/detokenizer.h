#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "text/tokenizer.h"

namespace headrace {

struct DetokenizeOptions {
  bool skip_special = true;
  std::vector<TokenId> shown_special = {};  ///< special tokens that are not skipped
  /// The tokens go on from text that is there already, so a leading space of theirs belongs to them. Otherwise all
  /// pushes and finish() together are exactly Tokenizer::decode of the tokens.
  bool continues_text = false;
};

/// Turns a stream of tokens into text as it becomes whole: never half a character, always valid UTF-8.
/// Copyable, so that a sequence can be forked or kept over a fault. Borrows the tokenizer. Not synchronised.
class StreamDetokenizer {
 public:
  explicit StreamDetokenizer(const Tokenizer& tokenizer, DetokenizeOptions options = {});

  /// The text that `id` completes; empty where it ends within a character.
  [[nodiscard]] std::string push(TokenId id);
  /// What is left, with U+FFFD for a character that never came to its end. The next push begins a new text.
  [[nodiscard]] std::string finish();

 private:
  const Tokenizer* tokenizer_;
  DetokenizeOptions options_;
  bool drop_space_;      // the first byte, if it is a space
  std::string pending_;  // the beginning of a character, at most 3 bytes
};

}  // namespace headrace
