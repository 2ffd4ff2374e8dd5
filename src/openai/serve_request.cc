#include "openai/serve_request.h"

namespace headrace::openai {
namespace {

/// A word is banned where it stands alone and where a blank is before it.
void ban_words(const CommonFields& common, const Model& model, SamplingParams& sampling) {
  for (const std::string& word : common.bad_words) {
    for (const std::string& form : {word, " " + word}) {
      std::vector<int32_t> tokens = model.tokenize(form, /*add_special=*/false, /*parse_special=*/false);
      if (!tokens.empty()) sampling.bad_words.push_back(std::move(tokens));
    }
  }
}

Request request_of(std::vector<int32_t> prompt, const CommonFields& common, const Model& model) {
  if (common.truncate_prompt_tokens && prompt.size() > static_cast<size_t>(*common.truncate_prompt_tokens)) {
    prompt.erase(prompt.begin(), prompt.end() - *common.truncate_prompt_tokens);
  }
  Request request{.input = std::move(prompt),
                  .sampling = common.sampling,
                  .score_only = common.score_only,
                  .priority = common.priority,
                  .cache_salt = common.cache_salt};
  ban_words(common, model, request.sampling);
  return request;
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
  Request request = request_of(model.tokenize(chat.conversation), chat.common, model);
  request.continues_text = chat.conversation.continue_final_message;
  return request;
}

std::vector<Request> to_requests(const CompletionRequest& completion, const Model& model) {
  std::vector<Request> requests;
  for (const auto& prompt : completion.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    requests.push_back(request_of(text != nullptr ? model.tokenize(*text, completion.add_special_tokens, true)
                                                  : std::get<std::vector<int32_t>>(prompt),
                                  completion.common, model));
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
      common_(chat.common),
      is_chat_(true),
      answers_(1) {
  requests_.push_back(to_request(chat, model));
  keep_prompts();
}

PendingAnswer::PendingAnswer(AnswerHead head, const CompletionRequest& completion, const Model& model)
    : head_(std::move(head)),
      names_(token_names(model, completion.common)),
      common_(completion.common),
      is_chat_(false),
      requests_(to_requests(completion, model)),
      echoed_(requests_.size()),
      answers_(requests_.size()) {
  keep_prompts();
  for (size_t i = 0; completion.echo && i < requests_.size(); ++i) {
    const auto& tokens = std::get<std::vector<int32_t>>(requests_[i].input);
    const auto* text = std::get_if<std::string>(&completion.prompts[i]);
    echoed_[i] = {.text = text != nullptr ? *text : model.detokenize(tokens, false),
                  .tokens = wants_logprobs() ? tokens : std::vector<int32_t>{}};
  }
}

void PendingAnswer::keep_prompts() {
  if (!common_.return_token_ids) return;
  for (const Request& request : requests_) prompts_.push_back(std::get<std::vector<int32_t>>(request.input));
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

void PendingAnswer::add_extensions(Json& choice, Json& prompt_holder, const Answer& answer, size_t request,
                                   size_t index) const {
  if (common_.return_token_ids) {
    choice["token_ids"] = answer.choices[index].tokens;
    prompt_holder["prompt_token_ids"] = prompts_[request];
  }
  if (common_.sampling.prompt_logprobs) {
    prompt_holder["prompt_logprobs"] = prompt_logprobs_json(answer.prompt_logprobs, names_);
  }
}

ErrorAnswer PendingAnswer::body() const {
  if (error_) return *error_;
  if (is_chat_) {
    Json body = chat_answer_json(head_, answers_[0], wants_logprobs(), names_);
    for (size_t c = 0; c < answers_[0].choices.size(); ++c) add_extensions(body["choices"][c], body, answers_[0], 0, c);
    return {200, std::move(body)};
  }
  Json choices = Json::array();
  for (size_t i = 0; i < answers_.size(); ++i) {
    const auto first = static_cast<int32_t>(choices.size());
    Json own = completion_choices_json(answers_[i], first, echoed_[i], wants_logprobs(), names_);
    for (size_t c = 0; c < own.size(); ++c) {
      add_extensions(own[c], own[c], answers_[i], i, c);
      choices.push_back(std::move(own[c]));
    }
  }
  return {200, completion_answer_json(head_, std::move(choices), sum_of(answers_))};
}

}  // namespace headrace::openai
