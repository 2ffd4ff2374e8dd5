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

AnswerPlan plan_of(AnswerHead head, const CommonFields& common, const Model& model) {
  return {.head = std::move(head),
          .common = common,
          .names = {.bytes = [&model](int32_t token) { return model.token_bytes(token); },
                    .as_ids = common.return_tokens_as_token_ids}};
}

void keep_prompts(AnswerPlan& plan) {
  plan.echoed.resize(plan.requests.size());
  if (!plan.common.return_token_ids) return;
  for (const Request& request : plan.requests) {
    plan.prompt_tokens.push_back(std::get<std::vector<int32_t>>(request.input));
  }
}

}  // namespace

AnswerPlan plan_answer(AnswerHead head, const ChatRequest& chat, const Model& model, const MessageFormat& format) {
  AnswerPlan plan = plan_of(std::move(head), chat.common, model);
  plan.requests.push_back(request_of(model.tokenize(chat.conversation), chat.common, model));
  plan.requests.back().continues_text = chat.conversation.continue_final_message;
  plan.parser = apply_message_format(format, chat, model, plan.requests.back());
  plan.old_calls = chat.tools.old_form;
  keep_prompts(plan);
  return plan;
}

AnswerPlan plan_answer(AnswerHead head, const CompletionRequest& completion, const Model& model) {
  AnswerPlan plan = plan_of(std::move(head), completion.common, model);
  plan.is_chat = false;
  for (const auto& prompt : completion.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    plan.requests.push_back(request_of(text != nullptr ? model.tokenize(*text, completion.add_special_tokens, true)
                                                       : std::get<std::vector<int32_t>>(prompt),
                                       completion.common, model));
  }
  keep_prompts(plan);
  for (size_t i = 0; completion.echo && i < plan.requests.size(); ++i) {
    const auto& tokens = std::get<std::vector<int32_t>>(plan.requests[i].input);
    const auto* text = std::get_if<std::string>(&completion.prompts[i]);
    plan.echoed[i] = {.text = text != nullptr ? *text : model.detokenize(tokens, false),
                      .tokens = plan.wants_logprobs() ? tokens : std::vector<int32_t>{}};
  }
  return plan;
}

}  // namespace headrace::openai
