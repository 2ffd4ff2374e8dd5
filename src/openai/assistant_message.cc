#include "openai/assistant_message.h"

#include <iterator>

#include "openai/answer_json.h"

namespace headrace::openai {

MessageDelta MessageStream::add(GenerationEvent& event) {
  if (parser_ == nullptr) return {.content = std::move(event.text)};
  MessageDelta delta = parser_->feed(event.text);
  if (event.finish_reason) {
    MessageDelta rest = parser_->finish();
    delta.content += rest.content;
    delta.reasoning += rest.reasoning;
    delta.tool_calls.insert(delta.tool_calls.end(), std::make_move_iterator(rest.tool_calls.begin()),
                            std::make_move_iterator(rest.tool_calls.end()));
  }
  undecided_tokens_ += static_cast<int32_t>(event.tokens.size());
  if (!delta.empty()) {
    if (!delta.reasoning.empty()) reasoning_tokens_ += undecided_tokens_;
    undecided_tokens_ = 0;
  }
  return delta;
}

std::string_view MessageStream::finish_reason(FinishReason reason) const noexcept {
  const bool calls = reason == FinishReason::kStop && parser_ != nullptr && parser_->has_whole_tool_calls();
  return calls ? kToolCalls : finish_reason_text(reason);
}

void AssistantMessage::add(MessageDelta delta) {
  content += delta.content;
  reasoning += delta.reasoning;
  for (ToolCallDelta& part : delta.tool_calls) {
    const auto calls = static_cast<size_t>(part.index) + 1;
    if (tool_calls.size() < calls) tool_calls.resize(calls);
    ToolCallDelta& call = tool_calls[calls - 1];
    call.index = part.index;
    call.id += part.id;
    call.name += part.name;
    call.arguments += part.arguments;
  }
}

}  // namespace headrace::openai
