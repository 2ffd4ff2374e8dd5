#include "openai/message_format.h"

namespace headrace::openai {

MessageFormat find_message_format(std::string_view, std::string_view, std::string_view) { return {}; }

MessageParserFactory apply_message_format(const MessageFormat&, const ChatRequest&, const Model&, Request&) {
  return {};
}

}  // namespace headrace::openai
