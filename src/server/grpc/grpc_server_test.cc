// gRPC calls as requests: what the handler is given, what the client is sent, and clients that go or misbehave.
#include "server/grpc_server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_callback.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <thread>

#include "base/cat.h"
#include "server/error_reply.h"

namespace headrace::server {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 10s;

bool soon(const std::function<bool()>& condition) {
  for (const auto end = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < end;
       std::this_thread::sleep_for(1ms)) {
    if (condition()) return true;
  }
  return false;
}

HttpOptions local() { return {.port = 0, .max_body_bytes = 100'000}; }

grpc::ByteBuffer buffer_of(const std::string& text) {
  const grpc::Slice slice(text);
  return {&slice, 1};
}

std::string text_of(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return "no message";
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

/// A client that speaks to any method.
class Client {
 public:
  explicit Client(uint16_t port) : stub_(connect(port)) {}

  struct Answer {
    grpc::Status status;
    std::string text;
  };
  Answer call(const std::string& method, const std::string& text) {
    grpc::ClientContext context;
    return call(method, text, context);
  }
  Answer call(const std::string& method, const std::string& text, grpc::ClientContext& context) {
    const grpc::ByteBuffer request = buffer_of(text);
    grpc::ByteBuffer response;
    std::promise<grpc::Status> done;
    stub_.UnaryCall(&context, method, {}, &request, &response, [&](grpc::Status status) { done.set_value(status); });
    const grpc::Status status = done.get_future().get();
    return {status, status.ok() ? text_of(response) : std::string()};
  }
  grpc::GenericStub& stub() { return stub_; }

 private:
  static std::shared_ptr<grpc::Channel> connect(uint16_t port) {
    grpc::ChannelArguments arguments;
    // Else gRPC may keep up to a gigabyte for a client that does not read.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return grpc::CreateCustomChannel(cat("127.0.0.1:", port), grpc::InsecureChannelCredentials(), arguments);
  }

  grpc::GenericStub stub_;
};

/// A call that reads nothing until it is told to.
class Stream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Stream(Client& client, const std::string& method, std::optional<std::string> message) {
    client.stub().PrepareBidiStreamingCall(&context, method, {}, this);
    if (message) {
      request_ = buffer_of(*message);
      StartWriteLast(&request_, {});
    }
    AddHold();  // until end()
    StartCall();
  }
  void read_all() { StartRead(&answer_); }
  grpc::Status end() {
    RemoveHold();
    return done_.get_future().get();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    texts += text_of(answer_);
    StartRead(&answer_);
  }
  void OnDone(const grpc::Status& status) override { done_.set_value(status); }

  grpc::ClientContext context;
  std::string texts;  // after end()

 private:
  grpc::ByteBuffer request_, answer_;
  std::promise<grpc::Status> done_;
};

/// Answers "/x/echo" with what it was given, and keeps the responders of all else for the test.
class Echo {
 public:
  explicit Echo(HttpOptions options = local())
      : server_(std::make_unique<GrpcServer>(options, [this](HttpRequest&& request, std::shared_ptr<Responder> client) {
          answer(std::move(request), std::move(client));
        })) {}
  ~Echo() { end_server(); }

  GrpcServer& server() { return *server_; }
  void end_server() { server_.reset(); }
  [[nodiscard]] int gone() const { return gone_; }
  std::shared_ptr<Responder> held() {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, kPatience, [&] { return held_ != nullptr; });
    return std::exchange(held_, nullptr);
  }
  HttpRequest last_request() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  void answer(HttpRequest&& request, std::shared_ptr<Responder> client) {
    const std::lock_guard lock(mutex_);
    last_ = request;
    if (request.path == "/x/echo") {
      return client->send({.body = request.body, .headers = {{"X-Request-Id", "7"}}});
    }
    if (request.path == "/x/forget") return;
    client->on_gone([this] { ++gone_; });
    held_ = std::move(client);
    arrived_.notify_all();
  }

  std::atomic<int> gone_ = 0;
  std::mutex mutex_;
  std::condition_variable arrived_;
  HttpRequest last_;
  std::shared_ptr<Responder> held_;
  std::unique_ptr<GrpcServer> server_;
};

TEST(GrpcServer, ACallIsARequest) {
  Echo echo;
  Client client(echo.server().port());
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer k");
  context.set_deadline(std::chrono::system_clock::now() + 60s);
  const auto answer = client.call("/x/echo", std::string("\0hello", 6), context);
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.text, std::string("\0hello", 6));
  EXPECT_EQ(context.GetServerInitialMetadata().count("x-request-id"), 1u);
  const HttpRequest request = echo.last_request();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/x/echo");
  EXPECT_EQ(request.header("authorization"), "Bearer k");
  ASSERT_TRUE(request.deadline);
  EXPECT_GT(*request.deadline, std::chrono::steady_clock::now() + 30s);
  EXPECT_TRUE(client.call("/x/echo", "").status.ok());
  EXPECT_FALSE(echo.last_request().deadline);
  EXPECT_TRUE(soon([&] { return echo.server().open_calls() == 0; }));
}

TEST(GrpcServer, ErrorsAreStatuses) {
  Echo echo;
  Client client(echo.server().port());
  const auto status_for = [&](const StatusError& error) {
    Stream call(client, "/x/held", "m");
    call.read_all();
    echo.held()->send(error_reply(error));
    grpc::Status status = call.end();
    const auto& trailers = call.context.GetServerTrailingMetadata();
    const auto object = trailers.find("headrace-error-bin");
    EXPECT_NE(object, trailers.end());
    if (object != trailers.end()) {
      EXPECT_NE(std::string(object->second.data(), object->second.size()).find(error.fields().code), std::string::npos);
    }
    return status;
  };
  EXPECT_EQ(status_for(unauthorized("Bearer")).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(status_for(queue_full(3, "full")).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status_for(queue_full(3, "full")).error_message(), "full");
  EXPECT_EQ(status_for(unavailable("loading", 5, "soon")).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status_for(timed_out("late")).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status_for(not_found("what?")).error_code(), grpc::StatusCode::NOT_FOUND);
  // Longer than what clients take of metadata.
  const grpc::Status longest = status_for(not_found(std::string(100'000, '"')));
  EXPECT_EQ(longest.error_code(), grpc::StatusCode::NOT_FOUND) << longest.error_message();
  EXPECT_EQ(client.call("/x/forget", "m").status.error_code(), grpc::StatusCode::INTERNAL);
}

TEST(GrpcServer, PiecesAreMessagesAndMayEndInAnError) {
  Echo echo;
  Client client(echo.server().port());
  Stream whole(client, "/x/held", "m");
  whole.read_all();
  auto responder = echo.held();
  responder->begin({.headers = {{"x-request-id", "9"}}});
  EXPECT_TRUE(responder->write("a"));
  EXPECT_TRUE(responder->write("bc"));
  responder->finish();
  EXPECT_FALSE(responder->write("late"));
  EXPECT_TRUE(whole.end().ok());
  EXPECT_EQ(whole.texts, "abc");
  EXPECT_EQ(whole.context.GetServerInitialMetadata().count("x-request-id"), 1u);

  Stream broken(client, "/x/held", "m");
  broken.read_all();
  responder = echo.held();
  EXPECT_TRUE(responder->write("a"));
  responder->send(error_reply(timed_out("late")));
  EXPECT_EQ(broken.end().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(broken.texts, "a");
  EXPECT_EQ(echo.gone(), 0);
}

TEST(GrpcServer, AClientThatGoesIsNoticed) {
  Echo echo;
  Client client(echo.server().port());
  Stream call(client, "/x/held", "m");
  const auto responder = echo.held();
  call.context.TryCancel();
  EXPECT_EQ(call.end().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(soon([&] { return echo.gone() == 1; }));
  EXPECT_TRUE(soon([&] { return echo.server().open_calls() == 0; }));
  EXPECT_FALSE(responder->write("nobody hears it"));
  int late = 0;
  responder->on_gone([&] { ++late; });
  EXPECT_EQ(late, 1);

  grpc::ClientContext impatient;
  impatient.set_deadline(std::chrono::system_clock::now() + 50ms);
  EXPECT_EQ(client.call("/x/held", "m", impatient).status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(soon([&] { return echo.gone() == 2; }));
}

TEST(GrpcServer, AClientThatDoesNotReadIsCutOff) {
  HttpOptions options = local();
  options.max_unsent_bytes = 1 << 20;
  Echo echo(options);
  Client client(echo.server().port());
  Stream call(client, "/x/held", "m");
  const auto responder = echo.held();
  const std::string piece(64 << 10, 'x');
  EXPECT_TRUE(soon([&] { return !responder->write(piece); }));
  EXPECT_TRUE(soon([&] { return echo.gone() == 1; }));
  EXPECT_TRUE(soon([&] { return echo.server().open_calls() == 0; }));
  call.context.TryCancel();
  EXPECT_FALSE(call.end().ok());
}

TEST(GrpcServer, HostileMessages) {
  HttpOptions options = local();
  options.body_timeout = 300ms;
  Echo echo(options);
  Client client(echo.server().port());
  EXPECT_EQ(client.call("/x/echo", std::string(200'000, 'x')).status.error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  // A small message could become a large one.
  grpc::ClientContext compressed;
  compressed.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  EXPECT_FALSE(client.call("/x/echo", std::string(90'000, 'x'), compressed).status.ok());
  Stream silent(client, "/x/echo", std::nullopt);
  silent.read_all();
  EXPECT_FALSE(silent.end().ok());
  EXPECT_TRUE(client.call("/x/echo", "still here").status.ok());
  EXPECT_TRUE(soon([&] { return echo.server().open_calls() == 0; }));
}

TEST(GrpcServer, ItsEndEndsCalls) {
  Echo echo;
  Client client(echo.server().port());
  Stream call(client, "/x/held", "m");
  call.read_all();
  const auto responder = echo.held();
  echo.end_server();
  EXPECT_EQ(echo.gone(), 1);
  EXPECT_FALSE(responder->write("late"));
  EXPECT_FALSE(call.end().ok());
}

TEST(GrpcServer, APortInUseIsAnError) {
  Echo echo;
  HttpOptions same = local();
  same.port = echo.server().port();
  try {
    Echo other(same);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(cat("cannot listen on 127.0.0.1:", same.port)), std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace headrace::server
