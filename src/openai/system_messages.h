#pragma once

#include "headrace/conversation.h"
#include "text/chat_renderer.h"

namespace headrace::openai {

/// Puts what all system messages say into one at the front, for templates that take no other. False where that changes
/// nothing.
[[nodiscard]] bool merge_system_messages(Conversation& conversation);

/// What `make` makes of the conversation; where the template refuses it and `may_merge`, again with its system messages
/// merged.
template <class Make>
[[nodiscard]] auto with_merged_system_messages(Conversation& conversation, bool may_merge, const Make& make) {
  try {
    return make();
  } catch (const TemplateError&) {
    if (!may_merge || !merge_system_messages(conversation)) throw;
    return make();
  }
}

}  // namespace headrace::openai
