#include "rpc/generation_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <utility>

#include "base/cat.h"
#include "headrace/v1/generation.pb.h"
#include "rpc/call_error.h"
#include "rpc/event_message.h"
#include "rpc/grpc_start.h"

namespace headrace::rpc {
namespace {

constexpr std::string_view kService = "/headrace.v1.Generation/";
constexpr int kMaxMetadataBytes = 64 << 10;
constexpr int kReconnectMs = 100, kMaxReconnectMs = 1000;  // a server that was just started is there soon

std::shared_ptr<grpc::Channel> connect(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // long answers with log-probabilities are large
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // proxies of web browsers know nothing of servers nearby
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.tls) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = options.ca_certificates;
    credentials = grpc::SslCredentials(tls);
  }
  return grpc::CreateCustomChannel(options.address, credentials, arguments);
}

grpc::ByteBuffer buffer_of(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

/// False where it is no such message.
bool parse(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite& message) {
  grpc::Slice slice;
  return buffer.DumpToSingleSlice(&slice).ok() && message.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
}

/// An answer that came whole, as events.
void deliver(Answer answer, const EventSink& sink) {
  for (size_t i = 0; i < answer.choices.size(); ++i) {
    Choice& choice = answer.choices[i];
    GenerationEvent event{.choice = static_cast<int32_t>(i),
                          .text = std::move(choice.text),
                          .tokens = std::move(choice.tokens),
                          .logprobs = std::move(choice.logprobs),
                          .finish_reason = choice.reason,
                          .stop_cause = std::move(choice.stop_cause)};
    if (i == 0) event.prompt_logprobs = std::move(answer.prompt_logprobs);
    event.last = i + 1 == answer.choices.size();
    event.usage = answer.usage;
    sink(std::move(event));
  }
}

/// What a call does with what comes.
class CallHandler {
 public:
  CallHandler() = default;
  CallHandler(const CallHandler&) = delete;
  CallHandler& operator=(const CallHandler&) = delete;
  virtual ~CallHandler() = default;
  /// Throws for a message that it cannot read.
  virtual void message(const grpc::ByteBuffer& bytes) = 0;
  /// nullptr: it ended well. Once, at the end.
  virtual void end(std::exception_ptr error, bool cancelled) = 0;
};

/// The calls that are under way, so that they can be waited for.
class OpenCalls {
 public:
  void add(ClientCall* call) {
    const std::lock_guard lock(mutex_);
    open_.insert(call);
  }
  void remove(ClientCall* call) {
    const std::lock_guard lock(mutex_);
    open_.erase(call);
    if (open_.empty()) empty_.notify_all();
  }
  void cancel_all() {
    std::unique_lock lock(mutex_);
    for (ClientCall* call : open_) call->cancel();
    empty_.wait(lock, [&] { return open_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  std::set<ClientCall*> open_;
};

/// One call: a message there, one or more back. Keeps itself alive until gRPC has done with it.
class Call final : public ClientCall, public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Call(std::string address, std::shared_ptr<OpenCalls> open, std::unique_ptr<CallHandler> handler)
      : address_(std::move(address)), open_(std::move(open)), handler_(std::move(handler)) {}

  void start(std::shared_ptr<Call> self, grpc::GenericStub& stub, const ClientOptions& options,
             const std::string& method, const google::protobuf::MessageLite& message, double timeout_seconds) {
    self_ = std::move(self);
    if (!options.api_key.empty()) context_.AddMetadata("authorization", cat("Bearer ", options.api_key));
    if (timeout_seconds > 0) {
      context_.set_deadline(std::chrono::system_clock::now() +
                            std::chrono::microseconds(static_cast<int64_t>(std::min(timeout_seconds, 1e9) * 1e6)));
    }
    request_ = buffer_of(message);
    open_->add(this);
    stub.PrepareBidiStreamingCall(&context_, cat(kService, method), {}, this);
    StartWriteLast(&request_, {});
    StartRead(&answer_);
    StartCall();
  }

  void cancel() override {
    cancelled_ = true;
    context_.TryCancel();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    try {
      handler_->message(answer_);
    } catch (const std::exception&) {
      fault_ = std::current_exception();
      return context_.TryCancel();
    }
    StartRead(&answer_);
  }

  void OnDone(const grpc::Status& status) override {
    handler_->end(error_of(status), cancelled_);
    open_->remove(this);
    self_.reset();  // the last thing: this may be gone
  }

 private:
  [[nodiscard]] std::exception_ptr error_of(const grpc::Status& status) const {
    if (fault_) return fault_;
    if (status.ok()) return nullptr;
    CallStatus failed{.code = status.error_code(), .message = status.error_message(), .object = {}};
    const auto& trailers = context_.GetServerTrailingMetadata();
    if (const auto object = trailers.find("headrace-error-bin"); object != trailers.end()) {
      failed.object.assign(object->second.data(), object->second.size());
    }
    return call_error(failed, address_);
  }

  const std::string address_;
  const std::shared_ptr<OpenCalls> open_;
  const std::unique_ptr<CallHandler> handler_;
  std::shared_ptr<Call> self_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  std::exception_ptr fault_;
  std::atomic<bool> cancelled_ = false;
};

class GenerationHandler final : public CallHandler {
 public:
  GenerationHandler(bool streams, CallSink sink) : streams_(streams), sink_(std::move(sink)) {}

  void message(const grpc::ByteBuffer& bytes) override {
    if (last_) throw Error(ErrorCode::kCorrupt, "the server sent more behind the end of its answer");
    if (streams_) {
      v1::GenerateEvent message;
      if (!parse(bytes, message)) throw Error(ErrorCode::kCorrupt, "the server sent something that is no event");
      GenerationEvent event = read_event(message);
      last_ = event.last;
      return sink_.on_event(std::move(event));
    }
    v1::GenerateResponse message;
    if (!parse(bytes, message) || message.choices().empty()) {
      throw Error(ErrorCode::kCorrupt, "the server sent something that is no answer");
    }
    last_ = true;
    deliver(read_answer(message), sink_.on_event);
  }

  void end(std::exception_ptr error, bool cancelled) override {
    if (last_) return;
    if (cancelled) return sink_.on_event({.finish_reason = FinishReason::kCancelled, .last = true});
    if (!error) {
      error = std::make_exception_ptr(Error(ErrorCode::kUnavailable, "the answer ended before it was complete"));
    }
    sink_.on_error(std::move(error));
  }

 private:
  const bool streams_;
  const CallSink sink_;
  bool last_ = false;
};

/// For a caller that waits.
class WaitingHandler final : public CallHandler {
 public:
  explicit WaitingHandler(google::protobuf::MessageLite& answer) : answer_(answer) {}
  [[nodiscard]] std::future<void> done() { return done_.get_future(); }

  void message(const grpc::ByteBuffer& bytes) override {
    came_ = parse(bytes, answer_);
    if (!came_) throw Error(ErrorCode::kCorrupt, "the server's answer cannot be read");
  }
  void end(std::exception_ptr error, bool) override {
    if (!error && !came_) error = std::make_exception_ptr(Error(ErrorCode::kCorrupt, "the server answered nothing"));
    if (error) return done_.set_exception(std::move(error));
    done_.set_value();
  }

 private:
  google::protobuf::MessageLite& answer_;
  std::promise<void> done_;
  bool came_ = false;
};

}  // namespace

class GenerationClient::Impl {
 public:
  explicit Impl(ClientOptions options) : options_(std::move(options)), stub_(connect(options_)) {}
  ~Impl() { open_->cancel_all(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::shared_ptr<ClientCall> start(const std::string& method, const google::protobuf::MessageLite& message,
                                    double timeout_seconds, std::unique_ptr<CallHandler> handler) {
    auto call = std::make_shared<Call>(options_.address, open_, std::move(handler));
    call->start(call, stub_, options_, method, message, timeout_seconds);
    return call;
  }

  void ask(const std::string& method, const google::protobuf::MessageLite& message, double timeout_seconds,
           google::protobuf::MessageLite& answer) {
    auto handler = std::make_unique<WaitingHandler>(answer);
    std::future<void> done = handler->done();
    start(method, message, timeout_seconds, std::move(handler));
    done.get();
  }

 private:
  const ClientOptions options_;
  grpc::GenericStub stub_;
  const std::shared_ptr<OpenCalls> open_ = std::make_shared<OpenCalls>();
};

GenerationClient::GenerationClient(ClientOptions options) {
  if (!std::ranges::all_of(options.api_key, [](char c) { return c > ' ' && c <= '~'; })) {
    throw Error(ErrorCode::kInvalidArgument, "api_key: it holds characters that no key can have");
  }
  start_grpc();
  impl_ = std::make_unique<Impl>(std::move(options));
}
GenerationClient::~GenerationClient() = default;

std::shared_ptr<ClientCall> GenerationClient::submit(const v1::GenerateRequest& request, bool streams,
                                                     double timeout_seconds, CallSink sink) {
  return impl_->start(streams ? "GenerateStream" : "Generate", request, timeout_seconds,
                      std::make_unique<GenerationHandler>(streams, std::move(sink)));
}

v1::ServerInfo GenerationClient::server_info(double timeout_seconds) {
  v1::ServerInfo info;
  impl_->ask("GetServerInfo", v1::ServerInfoRequest(), timeout_seconds, info);
  return info;
}

void GenerationClient::terminate(double timeout_seconds) {
  v1::TerminateResponse answer;
  impl_->ask("Terminate", v1::TerminateRequest(), timeout_seconds, answer);
}

}  // namespace headrace::rpc
