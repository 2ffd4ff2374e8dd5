#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "server/http_server.h"

namespace headrace::server {

/// What all calls of a server share.
struct CallHost {
  HttpOptions options;
  HttpHandler handler;
  std::atomic<int64_t> open_calls = 0;
};

class CallReactor;

/// The answer to one call on its way to the client. Outlives the call where somebody still holds it. Threading: every
/// function from any thread.
class CallAnswer {
 public:
  CallAnswer(CallReactor& reactor, grpc::GenericCallbackServerContext& context, const HttpOptions& options)
      : reactor_(&reactor), context_(&context), options_(options) {}

  // For whoever answers; see Responder.
  void send(HttpReply reply);
  void begin(const HttpReply& head);
  bool write(std::string_view bytes);
  void finish(grpc::Status status);
  void on_gone(std::function<void()> callback);
  [[nodiscard]] bool has_client();

  // For the reactor.
  void written(bool ok);
  void cancelled();
  /// Ends a call that is not answered yet.
  void give_up(const std::string& why);
  /// gRPC has done with the call: the reactor and the context go.
  void done();

 private:
  using Clock = std::chrono::steady_clock;

  // With the mutex held:
  void add_message(std::string_view bytes);
  void end(grpc::Status status);
  void cut(const std::string& why);
  void go_on();

  std::mutex mutex_;
  CallReactor* reactor_;  // nullptr once the call is done
  grpc::GenericCallbackServerContext* context_;
  const HttpOptions& options_;
  std::deque<grpc::ByteBuffer> messages_;  // the first one is being written, if any is
  size_t waiting_bytes_ = 0;
  bool writing_ = false;
  Clock::time_point write_began_;
  std::optional<grpc::Status> status_;  // how the call ends once all is written
  bool finishing_ = false;              // gRPC has been told
  bool gone_ = false;
  std::function<void()> on_gone_;
};

/// One call: reads its message, hands it over, writes the answer. Deletes itself when gRPC has done with it.
class CallReactor final : public grpc::ServerGenericBidiReactor {
 public:
  CallReactor(CallHost& host, grpc::GenericCallbackServerContext& context);
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override { answer_->written(ok); }
  void OnCancel() override { answer_->cancelled(); }
  void OnDone() override;

 private:
  CallHost& host_;
  grpc::GenericCallbackServerContext& context_;
  std::shared_ptr<CallAnswer> answer_;
  grpc::ByteBuffer message_;
  grpc::Alarm patience_;  // for the message
};

}  // namespace headrace::server
