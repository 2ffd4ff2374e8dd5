#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

struct HrTemplate;

namespace headrace {

/// What a chat template is given. JSON is passed as text.
struct ChatInput {
  std::string messages = {};  ///< array of messages, as clients of the OpenAI API send them
  std::string tools = {};     ///< array of tools; empty or "null" for none
  std::string variables =
      {};  ///< object of further names that the template sees (bos_token, eos_token, ...); may be empty
  bool add_generation_prompt = true;  ///< end with the beginning of the assistant's answer
  std::optional<std::tm> now = {};    ///< local time that strftime_now tells; the clock's if absent
};

/// A failure of a chat template. The code is kCorrupt for kSyntax and kInvalidArgument for the other two: the fault is
/// then in how the conversation and the template fit.
class TemplateError : public Error {
 public:
  enum class Kind : uint8_t {
    kSyntax,   ///< the template is not Jinja
    kRaised,   ///< the template called raise_exception; message() is what it said, word by word
    kRuntime,  ///< anything else: an operation that fails, too much work, too much output
  };
  TemplateError(Kind kind, std::string message)
      : Error(kind == Kind::kSyntax ? ErrorCode::kCorrupt : ErrorCode::kInvalidArgument, std::move(message)),
        kind_(kind) {}
  [[nodiscard]] Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

/// A compiled chat template: Jinja with the names, filters and white space rules of Hugging Face transformers
/// (docs: huggingface.co/docs/transformers/chat_templating). It reaches nothing outside its input, and its work, memory
/// and output are bounded. Move-only; render may be called from any number of threads at once.
class ChatRenderer {
 public:
  /// `name` is for messages. Throws TemplateError kSyntax.
  ChatRenderer(std::string_view name, std::string_view source);
  ChatRenderer(ChatRenderer&&) noexcept;
  ChatRenderer& operator=(ChatRenderer&&) noexcept;
  ~ChatRenderer();

  /// The prompt. It holds special tokens by name: encode it with EncodeOptions::parse_special.
  /// Throws TemplateError kRaised or kRuntime.
  [[nodiscard]] std::string render(const ChatInput& input) const;

 private:
  struct Free {
    void operator()(HrTemplate* chat_template) const noexcept;
  };
  std::unique_ptr<HrTemplate, Free> rust_;
};

}  // namespace headrace
