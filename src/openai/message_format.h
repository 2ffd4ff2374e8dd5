#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "headrace/headrace.h"
#include "openai/chat_request.h"
#include "openai/message_parser.h"

namespace headrace::openai {

class CallFormat;

/// How a model writes what is no plain content: calls of tools, and reasoning between <think> and </think>.
struct MessageFormat {
  enum class Reasoning : uint8_t {
    kNone,
    kMarked,     ///< where the prompt or the answer opens it
    kFromStart,  ///< the answer begins with it even unopened, unless the prompt has closed it
  };
  const CallFormat* calls = nullptr;  ///< nullptr: none that is known; the text of answers is then never a call
  Reasoning reasoning = Reasoning::kNone;
};

/// `tool_call_parser`: "hermes", "llama3", "mistral", "none", or "auto" for what the marks in the model's chat template
/// tell. `reasoning_parser`: "deepseek_r1", "qwen3", "none" or "auto". Throws Error(kInvalidArgument) for other names.
[[nodiscard]] MessageFormat find_message_format(std::string_view chat_template, std::string_view tool_call_parser,
                                                std::string_view reasoning_parser);

/// What the answers to one request may hold.
struct MessageShape {
  const CallFormat* calls = nullptr;           ///< nullptr: no calls
  std::set<std::string, std::less<>> tools{};  ///< names that may be called
  bool must_call = false;                      ///< it is bound to calls from its beginning, or from its reasoning on
  bool reasons = false;
  bool in_reasoning = false;  ///< from the beginning
};
[[nodiscard]] std::unique_ptr<MessageParser> make_message_parser(const MessageShape& shape);

/// Makes a parser for each choice of an answer. Empty, or what gives nullptr: all text is content.
using MessageParserFactory = std::function<std::unique_ptr<MessageParser>()>;

/// Adds to `request`, made from `chat` with the tokens of its prompt, what binds its answer to the calls that are asked
/// for and lets their marks be seen. What binds an answer (calls that must come, response_format and the like) binds
/// what follows the reasoning; calls that may come are bound from their mark on. Returns what parses the answers.
/// Throws RequestError.
[[nodiscard]] MessageParserFactory apply_message_format(const MessageFormat& format, const ChatRequest& chat,
                                                        const Model& model, Request& request);

}  // namespace headrace::openai
