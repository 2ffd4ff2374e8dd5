#pragma once

#include <string_view>

#include "headrace/conversation.h"
#include "openai/common_fields.h"
#include "openai/tool_fields.h"

namespace headrace::openai {

/// The body of POST /v1/chat/completions.
struct ChatRequest {
  CommonFields common;
  Conversation conversation;
  ToolFields tools;
};

/// Reads a body. Messages may have the roles system, developer (the same), user, assistant, tool and function; content
/// that comes in parts is joined, parts other than text are refused. Throws RequestError.
[[nodiscard]] ChatRequest read_chat_request(const Json& body, const SamplingParams& defaults,
                                            const RequestLimits& limits);

}  // namespace headrace::openai
