#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "openai/pending_answer.h"
#include "openai/stream_writer.h"
#include "server/event_relay.h"
#include "server/exchange.h"
#include "server/request_watch.h"
#include "server/server_context.h"

namespace headrace::server {

/// Makes the answer to one body of the events of its requests, on an I/O thread, and sends it.
class GenerationReply final : public EventReceiver, public std::enable_shared_from_this<GenerationReply> {
 public:
  GenerationReply(Exchange exchange, ServerContext& server, std::string endpoint, openai::AnswerPlan plan);

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
  void write(size_t request, GenerationEvent event);
  void add_to_whole(size_t request, GenerationEvent event);
  void fail(const std::exception& error, Outcome outcome);
  void end(Outcome outcome, int status);
  [[nodiscard]] Outcome outcome_of_end() const;
  [[nodiscard]] HttpReply timed(HttpReply reply) const;

  Exchange exchange_;
  ServerContext& server_;
  RequestWatch watch_;
  std::vector<Request> requests_;
  std::variant<openai::PendingAnswer, openai::StreamWriter> answer_;
  std::string buffer_;
  bool begun_ = false;  // the head of a stream was sent
  bool ended_ = false;  // nothing is sent any more
  bool cut_ = false;    // a choice came to its length

  std::mutex mutex_;
  std::vector<RequestId> ids_;
  Early early_;  // events that come while requests are being submitted
  bool submitting_ = true;
  bool gone_ = false;
};

}  // namespace headrace::server
