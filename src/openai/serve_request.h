#pragma once

#include "headrace/headrace.h"
#include "openai/answer_json.h"
#include "openai/chat_request.h"
#include "openai/completion_request.h"

namespace headrace::openai {

/// The request that a chat body asks of `model`. Throws Error, also for what the model's template refuses.
[[nodiscard]] Request to_request(const ChatRequest& chat, const Model& model);
/// The same for each prompt of a text completion.
[[nodiscard]] std::vector<Request> to_requests(const CompletionRequest& completion, const Model& model);

/// How the model's tokens are shown.
[[nodiscard]] TokenNames token_names(const Model& model, const CommonFields& common);

/// Collects the events of one body's requests, and makes the body of the answer when all have come.
class PendingAnswer {
 public:
  PendingAnswer(AnswerHead head, const ChatRequest& chat, const Model& model);
  PendingAnswer(AnswerHead head, const CompletionRequest& completion, const Model& model);

  /// What is to be submitted.
  [[nodiscard]] std::vector<Request>& requests() noexcept { return requests_; }
  /// An event of the request at `index`. True: all requests have ended.
  [[nodiscard]] bool add(size_t index, GenerationEvent event);
  /// One of the requests was not accepted. True: all have ended.
  [[nodiscard]] bool fail(const Error& error);
  /// Once all have ended: the answer, or what went wrong first.
  [[nodiscard]] ErrorAnswer body() const;

 private:
  void keep_prompts();
  void add_extensions(Json& choice, Json& prompt_holder, const Answer& answer, size_t request, size_t index) const;

  [[nodiscard]] bool wants_logprobs() const noexcept { return common_.sampling.logprobs.has_value(); }

  AnswerHead head_;
  TokenNames names_;
  CommonFields common_;
  bool is_chat_;
  std::vector<Request> requests_;
  std::vector<std::vector<int32_t>> prompts_;  // their tokens, with return_token_ids
  std::vector<EchoedPrompt> echoed_;
  std::vector<Answer> answers_;
  size_t ended_ = 0;
  std::optional<ErrorAnswer> error_;
};

}  // namespace headrace::openai
