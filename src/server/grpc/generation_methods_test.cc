// The gRPC service from a client's call to its answer, by the server and the client that there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "base/cat.h"
#include "headrace/v1/generation.pb.h"
#include "rpc/call_error.h"
#include "rpc/generation_client.h"
#include "server/server.h"

namespace headrace::server {
namespace {

using namespace std::chrono_literals;

constexpr double kPatience = 20;

ServeOptions quiet(ServeOptions options) {
  options.http.port = 0;
  options.http.threads = 1;
  options.grpc_port = 0;
  options.log_requests = false;
  return options;
}

/// A call and what comes of it.
class Asked {
 public:
  Asked(rpc::GenerationClient& client, const v1::GenerateRequest& request, bool streams, double timeout = kPatience) {
    call_ = client.submit(request, streams, timeout,
                          {.on_event = [came = came_](GenerationEvent&& event) { came->add(std::move(event), {}); },
                           .on_error = [came = came_](std::exception_ptr error) { came->add({}, std::move(error)); }});
  }
  /// Throws what the call fails with.
  Answer answer() {
    std::unique_lock lock(came_->mutex);
    came_->arrived.wait(lock, [&] { return came_->last; });
    if (came_->error) std::rethrow_exception(came_->error);
    return came_->answer;
  }
  void wait_for_event() {
    std::unique_lock lock(came_->mutex);
    came_->arrived.wait(lock, [&] { return came_->any; });
  }
  void cancel() { call_->cancel(); }

 private:
  struct Came {
    void add(GenerationEvent&& event, std::exception_ptr failure) {
      const std::lock_guard lock(mutex);
      any = true;
      last = event.last || failure;
      error = std::move(failure);
      if (!error) add_event(std::move(event), answer);
      arrived.notify_all();
    }
    std::mutex mutex;
    std::condition_variable arrived;
    bool any = false, last = false;
    Answer answer;
    std::exception_ptr error;
  };
  const std::shared_ptr<Came> came_ = std::make_shared<Came>();
  std::shared_ptr<rpc::ClientCall> call_;
};

/// Steps that take a while, so that no answer is complete before the test has seen it run.
LoadOptions slow() {
  return {.fault_injection = [](int64_t) {
    std::this_thread::sleep_for(5ms);
    return false;
  }};
}

class GrpcGeneration : public testing::Test {
 protected:
  void start(ServeOptions options = {}, LoadOptions load = {}) {
    server_ = std::make_unique<Server>(quiet(std::move(options)));
    client_ = connect();
    load.threads = 1;
    load.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
    load_ = load;
  }
  void set_ready() {
    server_->context().state.set_ready(
        std::make_unique<Model>(Model::load(std::string(HR_TEST_DATA) + "/models/llama", load_)));
  }
  std::unique_ptr<rpc::GenerationClient> connect(std::string key = {}) {
    return std::make_unique<rpc::GenerationClient>(
        rpc::ClientOptions{.address = cat("127.0.0.1:", server_->grpc_port()), .api_key = std::move(key)});
  }
  static v1::GenerateRequest asking(const std::string& text, int max_tokens) {
    v1::GenerateRequest request;
    request.set_text(text);
    request.mutable_sampling()->set_temperature(0);
    request.mutable_sampling()->set_ignore_eos(true);
    request.mutable_sampling()->set_max_tokens(max_tokens);
    return request;
  }
  Answer ask(const v1::GenerateRequest& request, bool streams = false) {
    return Asked(*client_, request, streams).answer();
  }
  template <class Failure = Error>
  std::string failure(const v1::GenerateRequest& request, double timeout = kPatience) {
    try {
      Asked(*client_, request, true, timeout).answer();
    } catch (const Failure& error) {
      return error.message();
    } catch (const std::exception& error) {
      return cat("another error: ", error.what());
    }
    return "no error";
  }
  ErrorCode failure_code(const v1::GenerateRequest& request, double timeout = kPatience) {
    try {
      Asked(*client_, request, true, timeout).answer();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  }
  bool soon(const std::function<bool(const ModelFigures&)>& condition) {
    for (const auto end = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(1ms)) {
      if (condition(server_->context().model().figures())) return true;
    }
    return false;
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<rpc::GenerationClient> client_;
  LoadOptions load_;
};

TEST_F(GrpcGeneration, WholeAndStreamedAnswersAreWhatTheModelSays) {
  start();
  set_ready();
  Model& model = server_->context().model();
  v1::GenerateRequest request = asking("hello there", 12);
  request.mutable_sampling()->set_n(2);
  request.mutable_sampling()->set_logprobs(1);
  SamplingParams sampling = model.default_params();
  sampling.temperature = 0;
  sampling.ignore_eos = true;
  sampling.max_tokens = 12;
  sampling.n = 2;
  const Answer own = model.answer({.input = std::string("hello there"), .sampling = sampling});
  for (const bool streams : {false, true}) {
    const Answer answer = ask(request, streams);
    ASSERT_EQ(answer.choices.size(), 2u);
    for (const size_t i : {0u, 1u}) {
      EXPECT_EQ(answer.choices[i].text, own.choices[i].text);
      EXPECT_EQ(answer.choices[i].tokens, own.choices[i].tokens);
      EXPECT_EQ(answer.choices[i].logprobs.size(), 12u);
      EXPECT_EQ(answer.choices[i].reason, FinishReason::kLength);
    }
    EXPECT_EQ(answer.usage.completion_tokens, 24);
    EXPECT_EQ(answer.usage.prompt_tokens, own.usage.prompt_tokens);
  }
}

TEST_F(GrpcGeneration, TokensConversationsAndLengths) {
  start();
  set_ready();
  const Model& model = server_->context().model();
  const std::vector<int32_t> tokens = model.tokenize("hello there", true, true);
  v1::GenerateRequest by_tokens = asking("", 8);
  by_tokens.mutable_tokens()->mutable_ids()->Add(tokens.begin(), tokens.end());
  EXPECT_EQ(ask(by_tokens).choices[0].tokens, ask(asking("hello there", 8)).choices[0].tokens);

  v1::GenerateRequest chat = asking("", 8);
  v1::Message& message = *chat.mutable_conversation()->add_messages();
  message.set_role("user");
  message.set_content("hello");
  const auto prompt = static_cast<int32_t>(model.tokenize("user: hello\n", false, false).size());
  EXPECT_EQ(ask(chat).usage.prompt_tokens, prompt);

  const auto length = static_cast<int32_t>(tokens.size());
  v1::GenerateRequest bounded = asking("hello there", 0);
  bounded.set_max_length(length + 5);
  EXPECT_EQ(ask(bounded).choices[0].tokens.size(), 5u);
  bounded.mutable_sampling()->set_max_tokens(3);
  EXPECT_EQ(ask(bounded).choices[0].tokens.size(), 3u);
  bounded.set_max_length(length);
  EXPECT_THAT(failure<ParameterError>(bounded), testing::HasSubstr("max_length"));
  bounded.set_max_length(-1);
  EXPECT_THAT(failure<ParameterError>(bounded), testing::HasSubstr("max_length"));
}

TEST_F(GrpcGeneration, ErrorsAreThoseOfAModelInTheProcess) {
  start({}, slow());
  set_ready();
  EXPECT_EQ(failure<ParameterError>({}), "prompt: expected text, tokens or conversation");
  v1::GenerateRequest hot = asking("a", 1);
  hot.mutable_sampling()->set_temperature(-1);
  EXPECT_THAT(failure<ParameterError>(hot), testing::HasSubstr("temperature"));
  v1::GenerateRequest unknown = asking("", 1);
  unknown.mutable_tokens()->add_ids(-5);
  EXPECT_EQ(failure_code(unknown), ErrorCode::kInvalidArgument);
  v1::GenerateRequest large = asking("", 1);
  for (int i = 0; i < 100'000; ++i) large.mutable_tokens()->add_ids(1);
  EXPECT_THAT(failure<ContextLengthError>(large), testing::HasSubstr("100000"));
  v1::GenerateRequest other = asking("a", 1);
  other.set_model("other");
  EXPECT_EQ(failure_code(other), ErrorCode::kNotFound);
  v1::GenerateRequest broken = asking("a", 4);
  broken.mutable_sampling()->mutable_structured_output()->set_regex("(");
  EXPECT_EQ(failure_code(broken), ErrorCode::kInvalidArgument);
  EXPECT_EQ(failure_code(asking("a", 100'000), 0.2), ErrorCode::kTimeout);
  EXPECT_TRUE(soon([](const ModelFigures& f) { return f.running_requests + f.queued_requests == 0; }));
}

TEST_F(GrpcGeneration, NothingIsServedWhileTheModelLoadsOrTheServerGoes) {
  start();
  EXPECT_EQ(failure_code(asking("a", 1)), ErrorCode::kUnavailable);
  EXPECT_THROW((void)client_->server_info(kPatience), Error);
  set_ready();
  const v1::ServerInfo info = client_->server_info(kPatience);
  EXPECT_EQ(info.model(), server_->context().model_name());
  EXPECT_EQ(info.max_model_len(), server_->context().model().max_model_len());
  EXPECT_FALSE(info.can_terminate());
  Asked running(*client_, asking("a", 60), true);
  running.wait_for_event();
  std::future<bool> drained = std::async(std::launch::async, [&] { return server_->drain([] { return false; }); });
  EXPECT_EQ(running.answer().choices[0].tokens.size(), 60u);
  EXPECT_TRUE(drained.get());
  EXPECT_THAT(failure(asking("a", 1)), testing::HasSubstr("going away"));
}

TEST_F(GrpcGeneration, CallsThatAreGivenUpFreeWhatTheyHeld) {
  // Steps that take a while, so that the answer is not complete before it is given up.
  start({}, {.fault_injection = [](int64_t) {
          std::this_thread::sleep_for(2ms);
          return false;
        }});
  set_ready();
  for (const bool streams : {true, false}) {
    Asked asked(*client_, asking("a", 100'000), streams);
    EXPECT_TRUE(soon([](const ModelFigures& f) { return f.running_requests == 1; }));
    asked.cancel();
    EXPECT_EQ(asked.answer().choices[0].reason, FinishReason::kCancelled);
    EXPECT_TRUE(soon([](const ModelFigures& f) { return f.running_requests == 0 && f.kv_used_blocks == 0; }));
  }
  Asked left(*client_, asking("a", 100'000), true);
  EXPECT_TRUE(soon([](const ModelFigures& f) { return f.running_requests == 1; }));
  std::thread goes([&] { client_.reset(); });  // the client's end
  EXPECT_EQ(left.answer().choices.back().reason, FinishReason::kCancelled);
  goes.join();
  EXPECT_TRUE(soon([](const ModelFigures& f) { return f.running_requests == 0 && f.kv_used_blocks == 0; }));
}

TEST_F(GrpcGeneration, AFullQueueSaysSo) {
  LoadOptions load = slow();
  load.max_num_seqs = 1;
  load.max_queued_requests = 1;
  start({}, load);
  set_ready();
  Asked running(*client_, asking("a", 100'000), true);
  EXPECT_TRUE(soon([](const ModelFigures& f) { return f.running_requests == 1; }));
  Asked waiting(*client_, asking("a", 100'000), true);
  EXPECT_TRUE(soon([](const ModelFigures& f) { return f.queued_requests == 1; }));
  EXPECT_EQ(failure_code(asking("a", 1)), ErrorCode::kUnavailable);
  running.cancel();
  waiting.cancel();
  (void)running.answer();
  (void)waiting.answer();
}

TEST_F(GrpcGeneration, KeysLimitsAndTheServersEnd) {
  const std::string file = testing::TempDir() + "grpc_keys";
  std::ofstream(file) << "user name=user concurrency=1\nchief admin\n";
  int ended = 0;
  start({.terminate = [&] { ++ended; }, .api_key_file = file}, slow());
  set_ready();
  EXPECT_THAT(failure<rpc::PermissionError>(asking("a", 1)), testing::HasSubstr("no key"));
  client_ = connect("wrong");
  EXPECT_THAT(failure<rpc::PermissionError>(asking("a", 1)), testing::HasSubstr("no key"));
  EXPECT_THROW(connect("two words"), Error);

  client_ = connect("user");
  EXPECT_FALSE(client_->server_info(kPatience).can_terminate());
  Asked running(*client_, asking("a", 100'000), true);
  running.wait_for_event();
  EXPECT_THAT(failure(asking("a", 1)), testing::HasSubstr("\"user\" has 1 requests running"));
  running.cancel();
  EXPECT_EQ(running.answer().choices[0].reason, FinishReason::kCancelled);
  EXPECT_THROW(client_->terminate(kPatience), rpc::PermissionError);
  EXPECT_EQ(ended, 0);
  const auto chief = connect("chief");
  EXPECT_TRUE(chief->server_info(kPatience).can_terminate());
  chief->terminate(kPatience);
  EXPECT_EQ(ended, 1);
}

TEST_F(GrpcGeneration, OnlyWhereItWasAllowedAClientEndsTheServer) {
  start();
  set_ready();
  try {
    client_->terminate(kPatience);
    ADD_FAILURE() << "no error";
  } catch (const rpc::PermissionError& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("--allow-terminate"));
  }
}

}  // namespace
}  // namespace headrace::server
