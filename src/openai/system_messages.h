#pragma once

#include "headrace/conversation.h"

namespace headrace::openai {

/// Puts what all system messages say into one at the front, for templates that take no other. False where that changes
/// nothing.
[[nodiscard]] bool merge_system_messages(Conversation& conversation);

}  // namespace headrace::openai
