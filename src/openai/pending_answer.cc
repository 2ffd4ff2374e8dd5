#include "openai/pending_answer.h"

#include <algorithm>

namespace headrace::openai {

PendingAnswer::PendingAnswer(AnswerPlan plan) : plan_(std::move(plan)), answers_(plan_.echoed.size()) {
  if (!plan_.is_chat) return;
  for (int32_t i = 0; i < plan_.common.sampling.n; ++i) streams_.emplace_back(plan_.parser);
  messages_.resize(streams_.size(), {.old_form = plan_.old_calls});
}

bool PendingAnswer::add(size_t index, GenerationEvent event) {
  if (event.error) return fail(*event.error);
  const bool last = event.last;
  if (plan_.is_chat) {
    const auto choice = static_cast<size_t>(event.choice);
    messages_[choice].add(streams_[choice].add(event));
    if (event.finish_reason) messages_[choice].finish_reason = streams_[choice].finish_reason(*event.finish_reason);
  }
  add_event(std::move(event), answers_[index]);
  return last && ++ended_ == answers_.size();
}

bool PendingAnswer::fail(const Error& error) {
  if (!error_) error_ = error_answer(error);
  return ++ended_ == answers_.size();
}

bool PendingAnswer::calls_tools() const noexcept {
  return std::ranges::any_of(messages_, [](const AssistantMessage& m) { return m.finish_reason == kToolCalls; });
}

void PendingAnswer::add_extensions(Json& choice, Json& prompt_holder, size_t request, size_t index) const {
  const Answer& answer = answers_[request];
  if (plan_.common.return_token_ids) {
    choice["token_ids"] = answer.choices[index].tokens;
    prompt_holder["prompt_token_ids"] = plan_.prompt_tokens[request];
  }
  if (plan_.common.sampling.prompt_logprobs) {
    prompt_holder["prompt_logprobs"] = prompt_logprobs_json(answer.prompt_logprobs, plan_.names);
  }
}

Json PendingAnswer::chat_body() const {
  Json body = head_json(plan_.head, "chat.completion");
  body["service_tier"] = nullptr;
  Json choices = Json::array();
  for (size_t c = 0; c < answers_[0].choices.size(); ++c) {
    choices.push_back(chat_choice_json(c, answers_[0].choices[c], messages_[c], plan_.wants_logprobs(), plan_.names));
    add_extensions(choices.back(), body, 0, c);
  }
  body["choices"] = std::move(choices);
  return body;
}

Json PendingAnswer::completion_body() const {
  Json body = head_json(plan_.head, "text_completion");
  Json choices = Json::array();
  for (size_t i = 0; i < answers_.size(); ++i) {
    const auto first = static_cast<int32_t>(choices.size());
    Json own = completion_choices_json(answers_[i], first, plan_.echoed[i], plan_.wants_logprobs(), plan_.names);
    for (size_t c = 0; c < own.size(); ++c) {
      add_extensions(own[c], own[c], i, c);
      choices.push_back(std::move(own[c]));
    }
  }
  body["choices"] = std::move(choices);
  return body;
}

ErrorAnswer PendingAnswer::body() const {
  if (error_) return *error_;
  Json body = plan_.is_chat ? chat_body() : completion_body();
  std::vector<Usage> usages;
  for (const Answer& answer : answers_) usages.push_back(answer.usage);
  int32_t reasoning_tokens = 0;
  for (const MessageStream& stream : streams_) reasoning_tokens += stream.reasoning_tokens();
  std::string text;
  append_usage(text, sum_of(usages), reasoning_tokens);
  body["usage"] = Json::parse(text);
  if (plan_.common.timings) {
    text.clear();
    append_timings(text, sum_of(usages));
    body["timings"] = Json::parse(text);
  }
  return {200, std::move(body)};
}

}  // namespace headrace::openai
