#include "openai/system_messages.h"

#include "openai/fields.h"

namespace headrace::openai {

bool merge_system_messages(Conversation& conversation) {
  const Json messages = Json::parse(conversation.messages);
  std::string said;
  Json others = Json::array();
  bool changes = false;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    if (message.value("role", "") != "system") {
      others.push_back(message);
      continue;
    }
    changes = changes || i > 0;
    const std::string text = message.value("content", "");
    if (!said.empty() && !text.empty()) said += "\n\n";
    said += text;
  }
  if (!changes) return false;
  Json merged = Json::array({{{"role", "system"}, {"content", said}}});
  merged.insert(merged.end(), others.begin(), others.end());
  conversation.messages = to_text(merged);
  return true;
}

}  // namespace headrace::openai
