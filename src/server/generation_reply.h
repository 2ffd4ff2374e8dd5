#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "server/answer_sender.h"
#include "server/event_relay.h"
#include "server/exchange.h"
#include "server/request_watch.h"
#include "server/server_context.h"

namespace headrace::server {

/// Answers one body by the events of its requests, on an I/O thread. A client that goes, or does not read what it is
/// sent, ends them.
class GenerationReply final : public EventReceiver, public std::enable_shared_from_this<GenerationReply> {
 public:
  GenerationReply(Exchange exchange, ServerContext& server, RequestShape shape, std::vector<Request> requests,
                  std::unique_ptr<AnswerSender> sender);

  /// Submits all requests. One that is refused is the answer; none of the others goes on.
  void start();
  void on_event(size_t request, GenerationEvent event) noexcept override;

 private:
  using Early = std::vector<std::pair<size_t, GenerationEvent>>;

  /// False: a request was refused, and that was answered.
  [[nodiscard]] bool submit_all();
  void take_early_events();
  void client_gone();
  void cancel_all();

  // One thread at a time: the relay's, and before that the one that starts.
  void handle(size_t request, GenerationEvent event) noexcept;
  void fail(const std::exception& error, Outcome outcome);
  void end(Outcome outcome, int status);
  [[nodiscard]] Outcome outcome_of_end() const;

  Exchange exchange_;
  ServerContext& server_;
  RequestWatch watch_;
  std::vector<Request> requests_;
  std::unique_ptr<AnswerSender> sender_;
  bool ended_ = false;  // nothing is sent any more
  bool cut_ = false;    // a choice came to its length

  std::mutex mutex_;
  std::vector<RequestId> ids_;
  Early early_;  // events that come while requests are being submitted
  bool submitting_ = true;
  bool gone_ = false;
};

}  // namespace headrace::server
