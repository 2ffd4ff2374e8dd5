#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "openai/chat_request.h"

namespace headrace::openai {

/// A part of a call of a tool. The first one of a call has id and name; the arguments of all, joined, are one JSON
/// text.
struct ToolCallDelta {
  int32_t index = 0;  ///< of the call within the message
  std::string id = {};
  std::string name = {};
  std::string arguments = {};
};

/// What a piece of an answer adds to the assistant's message.
struct MessageDelta {
  std::string content = {};
  std::string reasoning = {};
  std::vector<ToolCallDelta> tool_calls = {};

  [[nodiscard]] bool empty() const noexcept { return content.empty() && reasoning.empty() && tool_calls.empty(); }
};

/// Splits the text of one answer, as it comes, into content, reasoning and calls of tools. What may be the beginning of
/// a mark is held back until that is certain; nothing of the text is lost.
class MessageParser {
 public:
  MessageParser() = default;
  MessageParser(const MessageParser&) = delete;
  MessageParser& operator=(const MessageParser&) = delete;
  virtual ~MessageParser() = default;

  [[nodiscard]] virtual MessageDelta feed(std::string_view text) = 0;
  /// The answer has ended: what was held back. A call that was cut off keeps its arguments as they are.
  [[nodiscard]] virtual MessageDelta finish() = 0;
  /// Whether the message, as it is, consists of whole calls (finish_reason "tool_calls", where the answer was not cut).
  [[nodiscard]] virtual bool has_whole_tool_calls() const noexcept = 0;
};

}  // namespace headrace::openai
