#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <variant>

#include "openai/pending_answer.h"
#include "openai/stream_writer.h"
#include "server/answer_sender.h"
#include "server/responder.h"

namespace headrace::server {

/// Answers as the OpenAI API has them: one JSON body, or server-sent events. As long as no token is there, errors have
/// a status of their own; then they are a last event of the stream, which ends without "[DONE]".
class OpenAiSender final : public AnswerSender {
 public:
  /// `arrived`: when the request did.
  OpenAiSender(std::shared_ptr<Responder> responder, std::chrono::steady_clock::time_point arrived,
               openai::AnswerPlan plan);

  bool add(size_t request, GenerationEvent event) override;
  bool finished() const noexcept override { return finished_; }
  bool calls_tools() const noexcept override;
  int fail(const std::exception& error) override;

 private:
  [[nodiscard]] HttpReply timed(HttpReply reply) const;

  std::shared_ptr<Responder> responder_;
  std::chrono::steady_clock::time_point arrived_;
  std::variant<openai::PendingAnswer, openai::StreamWriter> answer_;
  std::string buffer_;
  bool begun_ = false;  // the head of a stream was sent
  bool finished_ = false;
};

}  // namespace headrace::server
