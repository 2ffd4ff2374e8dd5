#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/generation.h"
#include "openai/message_format.h"

namespace headrace::openai {

/// The finish_reason of a choice that calls tools.
inline constexpr std::string_view kToolCalls = "tool_calls";
/// The same, where tools were given as `functions`.
inline constexpr std::string_view kFunctionCall = "function_call";

/// Makes the assistant's message out of the events of one choice, piece by piece.
class MessageStream {
 public:
  explicit MessageStream(const MessageParserFactory& parser) : parser_(parser ? parser() : nullptr) {}

  /// What an event adds; the choice's last one also what was held back. Takes the event's text.
  [[nodiscard]] MessageDelta add(GenerationEvent& event);
  /// "stop", "length" or "tool_calls", for a choice that has ended so.
  [[nodiscard]] std::string_view finish_reason(FinishReason reason) const noexcept;
  /// Tokens whose text was reasoning, the marks around it included.
  [[nodiscard]] int32_t reasoning_tokens() const noexcept { return reasoning_tokens_; }

 private:
  std::unique_ptr<MessageParser> parser_;
  int32_t undecided_tokens_ = 0;  // what they are shows once some of their text comes
  int32_t reasoning_tokens_ = 0;
};

/// A whole message.
struct AssistantMessage {
  std::string content = {};
  std::string reasoning = {};
  std::vector<ToolCallDelta> tool_calls = {};  ///< whole ones
  bool old_form = false;                       ///< the first of them is shown, as `function_call`
  std::string_view finish_reason = "stop";

  void add(MessageDelta delta);
};

}  // namespace headrace::openai
