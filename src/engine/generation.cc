#include "headrace/generation.h"

#include <iterator>

#include "base/cat.h"

namespace headrace {
namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

ContextLengthError::ContextLengthError(int64_t prompt_tokens, int64_t max_model_len)
    : Error(ErrorCode::kInvalidArgument,
            cat("the prompt has ", prompt_tokens, " tokens, which leaves no room for an answer in ", max_model_len,
                " (--max-model-len)")),
      prompt_tokens_(prompt_tokens),
      max_model_len_(max_model_len) {}

std::string_view finish_reason_name(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

void add_event(GenerationEvent event, Answer& answer) {
  const auto choices = static_cast<size_t>(event.choice) + 1;
  if (answer.choices.size() < choices) answer.choices.resize(choices);
  Choice& choice = answer.choices[choices - 1];
  choice.text += event.text;
  append(choice.tokens, event.tokens);
  append(choice.logprobs, event.logprobs);
  append(answer.prompt_logprobs, event.prompt_logprobs);
  if (event.finish_reason) {
    choice.reason = *event.finish_reason;
    choice.stop_cause = std::move(event.stop_cause);
  }
  answer.usage = event.usage;
}

}  // namespace headrace
