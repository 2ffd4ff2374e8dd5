#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "headrace/conversation.h"
#include "headrace/generation.h"
#include "text/chat_renderer.h"
#include "text/tokenizer.h"

namespace headrace {

/// Turns conversations into the tokens that a model expects. Borrows the tokenizer.
class ChatPrompt {
 public:
  /// `name` and `source` of the chat template. Throws TemplateError for one that is not Jinja.
  ChatPrompt(std::string_view name, std::string_view source, const Tokenizer& tokenizer);

  /// Names of special tokens become tokens where the template wrote them; in the conversation they stay text. Throws
  /// TemplateError with the template's own message, and Error(kInvalidArgument) for a last message that cannot be
  /// continued. The conversation's members must be JSON.
  [[nodiscard]] std::vector<TokenId> encode(const Conversation& conversation) const;
  /// The text that encode() turns into tokens.
  [[nodiscard]] std::string render(const Conversation& conversation) const;

 private:
  [[nodiscard]] std::string render_marked(const Conversation& conversation) const;
  /// Cuts the rendered text after the last message's content.
  void cut_after_final(std::string& text, const nlohmann::ordered_json& messages) const;
  /// `text` with a mark inside each name of a special token; the same for all texts within a value.
  [[nodiscard]] std::string mark_specials(std::string_view text) const;
  void mark_all(nlohmann::ordered_json& json) const;

  const Tokenizer* tokenizer_;
  ChatRenderer renderer_;
  std::string variables_;                   // JSON object
  std::vector<std::string> specials_;       // names of special tokens
  std::array<bool, 256> begins_special_{};  // by the first byte
};

/// Conversation::messages of plain messages.
[[nodiscard]] std::string messages_json(std::span<const Message> messages);

}  // namespace headrace
