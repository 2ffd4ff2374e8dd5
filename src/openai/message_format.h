#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "headrace/headrace.h"
#include "openai/chat_request.h"
#include "openai/message_parser.h"

namespace headrace::openai {

class CallFormat;

/// How a model writes what is no plain content: calls of tools, and reasoning between <think> and </think>.
struct MessageFormat {
  const CallFormat* calls = nullptr;  ///< nullptr: it calls no tools, a request with tools is refused
  bool reasons = false;
};

/// `tool_call_parser`: "hermes", "llama3", "mistral", "none", or "auto" for what the marks in the model's chat template
/// tell. `reasoning_parser`: "deepseek_r1", "qwen3", "none" or "auto". Throws Error(kInvalidArgument) for other names.
[[nodiscard]] MessageFormat find_message_format(std::string_view chat_template, std::string_view tool_call_parser,
                                                std::string_view reasoning_parser);

/// Makes a parser for each choice of an answer. Empty, or what gives nullptr: all text is content.
using MessageParserFactory = std::function<std::unique_ptr<MessageParser>()>;

/// Adds to `request`, made from `chat`, what binds its answer to the calls that are asked for and lets their marks be
/// seen. Returns what parses the answers. Throws RequestError.
[[nodiscard]] MessageParserFactory apply_message_format(const MessageFormat& format, const ChatRequest& chat,
                                                        const Model& model, Request& request);

}  // namespace headrace::openai
