#pragma once

#include "openai/serve_request.h"

namespace headrace::openai {

/// Collects the events of one body's requests, and makes the body of the answer when all have come.
class PendingAnswer {
 public:
  explicit PendingAnswer(AnswerPlan plan);

  /// What is to be submitted.
  [[nodiscard]] std::vector<Request>& requests() noexcept { return plan_.requests; }
  /// An event of the request at `index`. True: all requests have ended.
  [[nodiscard]] bool add(size_t index, GenerationEvent event);
  /// One of the requests was not accepted. True: all have ended.
  [[nodiscard]] bool fail(const Error& error);
  /// Once all have ended: the answer, or what went wrong first.
  [[nodiscard]] ErrorAnswer body() const;
  /// Whether a choice ended with calls of tools.
  [[nodiscard]] bool calls_tools() const noexcept;

 private:
  [[nodiscard]] Json chat_body() const;
  [[nodiscard]] Json completion_body() const;
  void add_extensions(Json& choice, Json& prompt_holder, size_t request, size_t index) const;

  AnswerPlan plan_;
  std::vector<Answer> answers_;
  std::vector<MessageStream> streams_;      // of a chat, by choice
  std::vector<AssistantMessage> messages_;  // the same
  size_t ended_ = 0;
  std::optional<ErrorAnswer> error_;
};

}  // namespace headrace::openai
