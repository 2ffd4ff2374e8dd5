// The endpoints that generate, from the HTTP request to what the client is sent.
#include "server/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <thread>

#include "openai/fields.h"
#include "server/endpoints/endpoints.h"
#include "server/fake_responder.h"
#include "server/generation_reply.h"
#include "server/openai_sender.h"

namespace headrace::server {
namespace {

using openai::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A server without sockets: the test's thread is the I/O thread.
class TestServer {
 public:
  explicit TestServer(ServeOptions serve_options = {}, LoadOptions load = {})
      : options(quiet(std::move(serve_options))) {
    load.threads = 1;
    if (load.chat_template.empty()) {
      load.chat_template =
          "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
          "{{ raise_exception('system must be first') }}{% endif %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
    }
    context.state.set_ready(std::make_unique<Model>(Model::load(std::string(HR_TEST_DATA) + "/models/llama", load)));
  }
  ~TestServer() {
    context.state.drop_model();
    run_jobs();
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  std::shared_ptr<FakeResponder> send(StreamingEndpoint endpoint, std::string body, Caller caller = {},
                                      std::shared_ptr<FakeResponder> responder = std::make_shared<FakeResponder>()) {
    Exchange exchange{.request = {.method = "POST",
                                  .path = "/v1/x",
                                  .query = {},
                                  .headers = {},
                                  .body = std::move(body),
                                  .peer = {},
                                  .arrived = std::chrono::steady_clock::now()},
                      .responder = responder,
                      .request_id = "1",
                      .caller = std::move(caller)};
    endpoint(std::move(exchange), context);
    return responder;
  }
  /// Runs jobs until `done`, for at most ten seconds.
  template <class Done>
  bool run_until(Done done) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::unique_lock lock(mutex_);
      arrived_.wait_for(lock, std::chrono::milliseconds(5), [this] { return !jobs_.empty(); });
      lock.unlock();
      run_jobs();
    }
    return true;
  }
  std::shared_ptr<FakeResponder> answer(StreamingEndpoint endpoint, std::string body, Caller caller = {}) {
    auto responder = send(endpoint, std::move(body), std::move(caller));
    EXPECT_TRUE(run_until([&] { return responder->ended; }));
    return responder;
  }
  /// As many requests as that have ended.
  bool settle(int64_t requests) {
    return run_until([&] {
      const ModelFigures figures = context.model().figures();
      return figures.finished + figures.cancelled + figures.failed == requests;
    });
  }

 private:
  static ServeOptions quiet(ServeOptions options) {
    options.log_requests = false;
    return options;
  }
  void post(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    arrived_.notify_one();
  }
  void run_jobs() {
    std::deque<std::function<void()>> jobs;
    do {
      jobs.clear();
      {
        const std::lock_guard lock(mutex_);
        jobs.swap(jobs_);
      }
      for (const auto& job : jobs) job();
    } while (!jobs.empty());
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> jobs_;

 public:
  ServeOptions options;
  ServerContext context{options,
                        {.post = [this](std::function<void()> job) { post(std::move(job)); },
                         .connections = [] { return ConnectionFigures(); }}};
};

std::vector<Json> chunks_of(const std::string& stream) {
  std::vector<Json> chunks;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    const std::string data = stream.substr(at + 6, end - at - 6);
    if (data != "[DONE]") chunks.push_back(Json::parse(data));
    at = end + 2;
  }
  return chunks;
}

std::string header(const HttpReply& reply, std::string_view name) {
  for (const Header& h : reply.headers) {
    if (h.name == name) return h.value;
  }
  return {};
}

Json error_of(const FakeResponder& client) { return Json::parse(client.reply.body)["error"]; }

std::string chat_body(const std::string& fields,
                      const std::string& messages = R"([{"role":"user","content":"hello there"}])") {
  return "{\"messages\":" + messages + ",\"temperature\":0,\"ignore_eos\":true," + fields + "}";
}

constexpr const char* kLong = R"({"prompt":"a b","temperature":0,"ignore_eos":true,"max_tokens":100000,"stream":true})";

/// A stream of 40 answers, which a server that computes one at a time is not done with soon.
std::string long_body() {
  std::string prompts = "\"a b\"";
  for (int i = 1; i < 40; ++i) prompts += ",\"a b\"";
  return "{\"prompt\":[" + prompts + R"(],"temperature":0,"ignore_eos":true,"max_tokens":100000,"stream":true})";
}

TEST(ChatCompletions, TheStreamSaysWhatTheWholeAnswerSays) {
  TestServer server;
  const auto whole = server.answer(chat_completions, chat_body(R"("max_tokens":24,"n":2)"));
  const auto streamed = server.answer(
      chat_completions, chat_body(R"("max_tokens":24,"n":2,"stream":true,"stream_options":{"include_usage":true})"));
  ASSERT_EQ(whole->reply.status, 200) << whole->reply.body;
  EXPECT_FALSE(header(whole->reply, "openai-processing-ms").empty());
  EXPECT_EQ(streamed->reply.content_type, "text/event-stream; charset=utf-8");
  EXPECT_EQ(header(streamed->reply, "X-Accel-Buffering"), "no");
  EXPECT_TRUE(streamed->finished);
  EXPECT_TRUE(streamed->text.ends_with("data: [DONE]\n\n"));

  const Json body = Json::parse(whole->reply.body);
  std::vector<Json> chunks = chunks_of(streamed->text);
  std::string texts[2];
  for (const Json& chunk : chunks) {
    if (chunk["choices"].empty()) continue;
    const Json& choice = chunk["choices"][0];
    texts[choice["index"].get<size_t>()] += choice["delta"].value("content", "");
  }
  for (const size_t i : {0u, 1u}) {
    EXPECT_EQ(body["choices"][i]["message"]["content"], texts[i]);
    EXPECT_FALSE(texts[i].empty());
    EXPECT_EQ(body["choices"][i]["finish_reason"], "length");
  }
  EXPECT_EQ(chunks.back()["usage"]["completion_tokens"], 48);
  EXPECT_EQ(chunks.back()["usage"]["prompt_tokens"], body["usage"]["prompt_tokens"]);
  EXPECT_EQ(body["id"], "chatcmpl-1");
}

TEST(Completions, ManyPromptsInOneBody) {
  TestServer server;
  const std::string rest = R"("temperature":0,"ignore_eos":true,"max_tokens":8,"n":2)";
  const auto whole = server.answer(completions, R"({"prompt":["a b","c d e"],)" + rest + "}");
  const auto streamed = server.answer(completions, R"({"prompt":["a b","c d e"],"stream":true,)" + rest + "}");
  ASSERT_EQ(whole->reply.status, 200) << whole->reply.body;
  const Json body = Json::parse(whole->reply.body);
  std::string texts[4];
  for (const Json& chunk : chunks_of(streamed->text)) {
    texts[chunk["choices"][0]["index"].get<size_t>()] += chunk["choices"][0]["text"].get<std::string>();
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(body["choices"][i]["text"], texts[i]) << i;
  EXPECT_EQ(body["usage"]["completion_tokens"], 32);
}

TEST(Completions, ScoresAsEvaluationHarnessesAskForThem) {
  TestServer server;
  const auto client =
      server.answer(completions, R"({"prompt":[5,6,7],"echo":true,"logprobs":1,"max_tokens":0,"temperature":0})");
  ASSERT_EQ(client->reply.status, 200) << client->reply.body;
  const Json logprobs = Json::parse(client->reply.body)["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"].size(), 3u);
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_TRUE(logprobs["token_logprobs"][1].is_number());
}

TEST(Generation, WhatCannotBeServedIsSaidBeforeAnyHeader) {
  TestServer server({.served_model_names = {"served"}}, {.max_model_len = 64});
  const auto refused = [&](StreamingEndpoint endpoint, const std::string& body) {
    const auto client = server.answer(endpoint, body);
    EXPECT_FALSE(client->begun);
    const Json error = error_of(*client);
    return std::to_string(client->reply.status) + " " + error["code"].get<std::string>() + " " +
           openai::to_text(error["param"]);
  };
  EXPECT_EQ(refused(completions, R"({"prompt":"a","temperature":-1,"stream":true})"),
            "400 invalid_value \"temperature\"");
  EXPECT_EQ(refused(completions, "{"), "400 invalid_json null");
  EXPECT_EQ(refused(completions, R"({"prompt":"a","model":"other"})"), "404 model_not_found \"model\"");
  EXPECT_EQ(refused(completions, R"({"prompt":[[5],[99999]],"stream":true})"), "400 invalid_value \"prompt\"");
  EXPECT_EQ(refused(chat_completions, chat_body(R"("chat_template":"x")")),
            "400 unsupported_parameter \"chat_template\"");
  std::string prompt = "[5";
  for (int i = 0; i < 70; ++i) prompt += ",6";
  const auto client = server.answer(completions, R"({"stream":true,"prompt":)" + prompt + "]}");
  EXPECT_EQ(client->reply.status, 400);
  EXPECT_EQ(error_of(*client)["code"], "context_length_exceeded");
  EXPECT_EQ(error_of(*client)["n_prompt_tokens"], 71);
  EXPECT_EQ(error_of(*client)["n_ctx"], 64);
  const auto beside = server.answer(completions, R"({"prompt":[[5],[6],[99999]],"ignore_eos":true,"stream":true})");
  EXPECT_EQ(beside->reply.status, 400);
  EXPECT_TRUE(server.settle(3)) << "prompts beside a refused one end: two here, one above";
  EXPECT_TRUE(beside->text.empty());
}

TEST(Generation, ClientsThatGoFreeTheirPlace) {
  TestServer server({}, {.max_num_seqs = 1});
  const auto client = server.send(completions, long_body());
  ASSERT_TRUE(server.run_until([&] { return client->begun; }));
  client->gone();
  EXPECT_TRUE(server.settle(40));
  EXPECT_GT(server.context.model().figures().cancelled, 0);
  EXPECT_FALSE(client->ended) << "there is nobody to tell";
}

TEST(Generation, ClientsThatAreGoneAlreadyTakeNoPlace) {
  TestServer server({}, {.max_num_seqs = 1});
  const auto client = std::make_shared<FakeResponder>();
  client->is_gone = true;
  server.send(completions, long_body(), {}, client);
  EXPECT_TRUE(server.settle(40));
  EXPECT_GT(server.context.model().figures().cancelled, 0);
}

TEST(Generation, NothingIsDoneForClientsThatHadGone) {
  TestServer server;
  const auto client = std::make_shared<FakeResponder>();
  client->was_gone = true;
  server.send(completions, long_body(), {}, client);
  const ModelFigures figures = server.context.model().figures();
  EXPECT_EQ(figures.queued_requests + figures.running_requests + figures.finished + figures.cancelled, 0);
  EXPECT_FALSE(client->ended);
}

TEST(Generation, SlowReadersFreeTheirPlace) {
  TestServer server({}, {.max_num_seqs = 1});
  const auto client = server.send(completions, long_body());
  ASSERT_TRUE(server.run_until([&] { return client->begun; }));
  client->reads_too_slowly = true;
  EXPECT_TRUE(server.settle(40));
  EXPECT_GT(server.context.model().figures().cancelled, 0);
}

TEST(Generation, AFullQueueSaysWhenToTryAgain) {
  TestServer server({}, {.max_num_seqs = 1, .max_queued_requests = 1});
  std::vector<std::shared_ptr<FakeResponder>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(server.send(completions, kLong));
  int refused = 0;
  for (const auto& client : clients) {
    if (!client->ended) continue;
    ++refused;
    EXPECT_EQ(client->reply.status, 429);
    EXPECT_EQ(error_of(*client)["code"], "queue_full");
    EXPECT_GE(std::stoi(header(client->reply, "Retry-After")), 1);
  }
  EXPECT_GE(refused, 6) << "one runs at most, one waits";
  for (const auto& client : clients) {
    if (!client->ended) client->gone();
  }
  EXPECT_TRUE(server.settle(8 - refused));
}

TEST(Generation, DeadlinesAre504) {
  TestServer server({.request_timeout_seconds = 1e-6});
  const auto client = server.answer(completions, kLong);
  EXPECT_EQ(client->reply.status, 504);
  EXPECT_EQ(error_of(*client)["code"], "timeout");
}

TEST(Generation, TheServersEndIsAnError) {
  TestServer server;
  const auto client = server.send(completions, R"({"prompt":"a","ignore_eos":true,"max_tokens":100000})");
  server.context.state.drop_model();
  EXPECT_TRUE(server.run_until([&] { return client->ended; }));
  EXPECT_EQ(client->reply.status, 503);
  EXPECT_EQ(error_of(*client)["code"], "draining");
}

/// A reply that the test tells events of, in place of a model.
std::shared_ptr<GenerationReply> reply_to(const std::shared_ptr<FakeResponder>& client, TestServer& server,
                                          size_t prompts, bool streams) {
  openai::AnswerPlan plan{.head = {}, .common = {}, .names = {}, .is_chat = false};
  plan.common.stream = streams;
  plan.echoed.resize(prompts);
  auto reply = std::make_shared<GenerationReply>(
      Exchange{.request = {}, .responder = client, .request_id = "1", .caller = {}}, server.context,
      RequestShape{.endpoint = "/v1/completions", .choices = 1, .stream = streams}, std::vector<Request>(),
      std::make_unique<OpenAiSender>(client, std::chrono::steady_clock::now(), std::move(plan)));
  reply->start();
  return reply;
}

TEST(Generation, AnErrorAfterTheHeadEndsTheStreamUnfinished) {
  TestServer server;
  const auto client = std::make_shared<FakeResponder>();
  const auto reply = reply_to(client, server, 1, true);
  reply->on_event(0, {.text = "a", .tokens = {1}});
  reply->on_event(0, {.error = Error(ErrorCode::kInternal, "the step failed"), .last = true});
  EXPECT_TRUE(client->aborted);
  EXPECT_FALSE(client->finished);
  const std::vector<Json> chunks = chunks_of(client->text);
  EXPECT_EQ(chunks.back()["error"]["message"], "the step failed");
  EXPECT_EQ(chunks.back()["error"]["code"], "internal");
  EXPECT_THAT(client->text, testing::Not(HasSubstr("[DONE]")));
}

TEST(Generation, AnErrorBeforeTheHeadHasAStatus) {
  TestServer server;
  for (const bool streams : {false, true}) {
    const auto client = std::make_shared<FakeResponder>();
    const auto reply = reply_to(client, server, 2, streams);
    reply->on_event(1, {.error = Error(ErrorCode::kInternal, "the step failed"), .last = true});
    EXPECT_EQ(client->reply.status, 500);
    EXPECT_EQ(header(client->reply, "x-should-retry"), "false");
    EXPECT_FALSE(client->begun);
    reply->on_event(0, {.text = "late", .finish_reason = FinishReason::kStop, .last = true});
    EXPECT_TRUE(client->text.empty());
  }
}

TEST(ChatTemplates, SpeakForThemselves) {
  const std::string messages =
      R"([{"role":"user","content":"a"},{"role":"system","content":"b"},{"role":"system","content":"c"}])";
  const std::string body = chat_body("\"max_tokens\":4,\"return_token_ids\":true", messages);
  TestServer strict;
  const auto refused = strict.answer(chat_completions, body);
  EXPECT_EQ(refused->reply.status, 400);
  EXPECT_EQ(error_of(*refused)["code"], "template_error");
  EXPECT_EQ(error_of(*refused)["message"], "system must be first");

  TestServer merging({.merge_system_messages = true});
  const auto merged = merging.answer(chat_completions, body);
  ASSERT_EQ(merged->reply.status, 200) << merged->reply.body;
  const auto tokens = Json::parse(merged->reply.body)["prompt_token_ids"].get<std::vector<int32_t>>();
  EXPECT_EQ(merging.context.model().detokenize(tokens), "system: b\n\nc\nuser: a\n");

  TestServer trusting({.trust_request_chat_template = true});
  const auto own = trusting.answer(
      chat_completions,
      chat_body(R"("max_tokens":4,"return_token_ids":true,"chat_template":"{{ messages|length }}")", messages));
  ASSERT_EQ(own->reply.status, 200) << own->reply.body;
  EXPECT_EQ(
      trusting.context.model().detokenize(Json::parse(own->reply.body)["prompt_token_ids"].get<std::vector<int32_t>>()),
      "3");
  const auto broken = trusting.answer(chat_completions, chat_body(R"("chat_template":"{% if")"));
  EXPECT_EQ(error_of(*broken)["code"], "template_error");
}

TEST(Salts, NoRequestReachesAnotherCallers) {
  EXPECT_EQ(joined_salt("", ""), "");
  EXPECT_EQ(joined_salt("a", "b"), joined_salt("a", "b"));
  EXPECT_NE(joined_salt("a", ""), joined_salt("", "a"));
  EXPECT_NE(joined_salt("a", "bc"), joined_salt("ab", "c"));
  EXPECT_NE(joined_salt("", "1:a"), joined_salt("a", ""));
  EXPECT_NE(joined_salt("", joined_salt("a", "")), joined_salt("a", ""));

  TestServer server;
  std::string prompt = "[5";
  for (int i = 0; i < 60; ++i) prompt += ",6";
  const auto cached = [&](const char* salt, const std::string& own) {
    const auto client =
        server.answer(completions, R"({"max_tokens":1,"cache_salt":")" + own + R"(","prompt":)" + prompt + "]}",
                      {.cache_salt = salt});
    return Json::parse(client->reply.body)["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>();
  };
  EXPECT_EQ(cached("a", ""), 0);
  EXPECT_EQ(cached("a", ""), 48);
  EXPECT_EQ(cached("b", ""), 0);
  EXPECT_EQ(cached("b", joined_salt("a", "")), 0);
}

}  // namespace
}  // namespace headrace::server
