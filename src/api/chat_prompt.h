#pragma once

#include <span>
#include <string>
#include <vector>

#include "headrace/headrace.h"
#include "text/chat_renderer.h"
#include "text/tokenizer.h"

namespace headrace {

/// Turns conversations into the tokens that a model expects. Borrows the tokenizer.
class ChatPrompt {
 public:
  /// `name` and `source` of the chat template. Throws TemplateError for one that is not Jinja.
  ChatPrompt(std::string_view name, std::string_view source, const Tokenizer& tokenizer);

  /// The conversation with the beginning of the assistant's answer. Names of special tokens become tokens where the
  /// template wrote them; in the messages they stay text. Throws TemplateError with the template's own message.
  [[nodiscard]] std::vector<TokenId> encode(std::span<const Message> messages) const;
  /// The text that encode() turns into tokens.
  [[nodiscard]] std::string render(std::span<const Message> messages) const;

 private:
  [[nodiscard]] std::string render_marked(std::span<const Message> messages) const;
  /// `text` with a mark inside each name of a special token.
  [[nodiscard]] std::string mark_specials(std::string_view text) const;

  const Tokenizer* tokenizer_;
  ChatRenderer renderer_;
  std::string variables_;              // JSON object
  std::vector<std::string> specials_;  // names of special tokens
};

}  // namespace headrace
