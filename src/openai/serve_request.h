#pragma once

#include "headrace/headrace.h"
#include "openai/answer_json.h"
#include "openai/chat_request.h"
#include "openai/completion_request.h"

namespace headrace::openai {

/// A body made ready for a model: what is submitted, and what its answer shows besides the events.
struct AnswerPlan {
  AnswerHead head;
  CommonFields common;
  TokenNames names;
  bool is_chat = true;
  MessageParserFactory parser = {};  ///< of chats
  bool old_calls = false;            ///< tools were given as `functions`, and are called in that form
  std::vector<Request> requests = {};
  std::vector<EchoedPrompt> echoed = {};                 ///< by request, always
  std::vector<std::vector<int32_t>> prompt_tokens = {};  ///< by request, with return_token_ids

  [[nodiscard]] bool wants_logprobs() const noexcept { return common.sampling.logprobs.has_value(); }
};

/// The plan borrows the model. Throws Error, also for what the model's template refuses.
[[nodiscard]] AnswerPlan plan_answer(AnswerHead head, const ChatRequest& chat, const Model& model,
                                     const MessageFormat& format);
[[nodiscard]] AnswerPlan plan_answer(AnswerHead head, const CompletionRequest& completion, const Model& model);

}  // namespace headrace::openai
