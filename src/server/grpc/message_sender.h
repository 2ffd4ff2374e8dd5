#pragma once

#include <memory>

#include "server/answer_sender.h"
#include "server/responder.h"

namespace headrace::server {

/// Answers a gRPC call with one request: with a headrace.v1.GenerateResponse, or a GenerateEvent for each event. An
/// error is the call's status, also after events.
class MessageSender final : public AnswerSender {
 public:
  MessageSender(std::shared_ptr<Responder> responder, bool streams)
      : responder_(std::move(responder)), streams_(streams) {}

  bool add(size_t request, GenerationEvent event) override;
  bool finished() const noexcept override { return finished_; }
  bool calls_tools() const noexcept override { return false; }
  int fail(const std::exception& error) override;

 private:
  std::shared_ptr<Responder> responder_;
  bool streams_;
  bool begun_ = false;
  bool finished_ = false;
  Answer answer_;
};

}  // namespace headrace::server
