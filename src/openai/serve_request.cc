#include "openai/serve_request.h"

namespace headrace::openai {
namespace {

Request request_of(std::vector<int32_t> prompt, const CommonFields& common) {
  if (common.truncate_prompt_tokens && prompt.size() > static_cast<size_t>(*common.truncate_prompt_tokens)) {
    prompt.erase(prompt.begin(), prompt.end() - *common.truncate_prompt_tokens);
  }
  return {.input = std::move(prompt),
          .sampling = common.sampling,
          .score_only = common.score_only,
          .priority = common.priority,
          .cache_salt = common.cache_salt};
}

Usage sum_of(const std::vector<Answer>& answers) {
  Usage sum;
  for (const Answer& answer : answers) {
    sum.prompt_tokens += answer.usage.prompt_tokens;
    sum.cached_tokens += answer.usage.cached_tokens;
    sum.completion_tokens += answer.usage.completion_tokens;
  }
  return sum;
}

}  // namespace

Request to_request(const ChatRequest& chat, const Model& model) {
  Request request = request_of(model.tokenize(chat.conversation), chat.common);
  request.continues_text = chat.conversation.continue_final_message;
  return request;
}

std::vector<Request> to_requests(const CompletionRequest& completion, const Model& model) {
  std::vector<Request> requests;
  for (const auto& prompt : completion.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    requests.push_back(request_of(text != nullptr ? model.tokenize(*text, completion.add_special_tokens, true)
                                                  : std::get<std::vector<int32_t>>(prompt),
                                  completion.common));
  }
  return requests;
}

TokenNames token_names(const Model& model, const CommonFields& common) {
  return {.bytes = [&model](int32_t token) { return model.token_bytes(token); },
          .as_ids = common.return_tokens_as_token_ids};
}

PendingAnswer::PendingAnswer(AnswerHead head, const ChatRequest& chat, const Model& model)
    : head_(std::move(head)),
      names_(token_names(model, chat.common)),
      is_chat_(true),
      logprobs_(chat.common.sampling.logprobs.has_value()) {
  requests_.push_back(to_request(chat, model));
  answers_.resize(1);
}

PendingAnswer::PendingAnswer(AnswerHead head, const CompletionRequest& completion, const Model& model)
    : head_(std::move(head)),
      names_(token_names(model, completion.common)),
      is_chat_(false),
      logprobs_(completion.common.sampling.logprobs.has_value()),
      echo_(completion.echo),
      requests_(to_requests(completion, model)),
      echoed_(requests_.size()),
      answers_(requests_.size()) {
  for (size_t i = 0; echo_ && i < requests_.size(); ++i) {
    const auto& tokens = std::get<std::vector<int32_t>>(requests_[i].input);
    const auto* text = std::get_if<std::string>(&completion.prompts[i]);
    echoed_[i] = {.text = text != nullptr ? *text : model.detokenize(tokens, false),
                  .tokens = logprobs_ ? tokens : std::vector<int32_t>{}};
  }
}

bool PendingAnswer::add(size_t index, GenerationEvent event) {
  if (event.error) return fail(*event.error);
  const bool last = event.last;
  add_event(std::move(event), answers_[index]);
  return last && ++ended_ == requests_.size();
}

bool PendingAnswer::fail(const Error& error) {
  if (!error_) error_ = error_answer(error);
  return ++ended_ == requests_.size();
}

ErrorAnswer PendingAnswer::body() const {
  if (error_) return *error_;
  if (is_chat_) return {200, chat_answer_json(head_, answers_[0], logprobs_, names_)};
  Json choices = Json::array();
  for (size_t i = 0; i < answers_.size(); ++i) {
    const auto first = static_cast<int32_t>(choices.size());
    for (Json& choice : completion_choices_json(answers_[i], first, echoed_[i], logprobs_, names_)) {
      choices.push_back(std::move(choice));
    }
  }
  return {200, completion_answer_json(head_, std::move(choices), sum_of(answers_))};
}

}  // namespace headrace::openai
