#include "server/trace_exporter.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/cat.h"
#include "base/error.h"
#include "server/metrics.h"
#include "server/otlp_json.h"
#include "server/request_log.h"
#include "server/request_watch.h"

namespace headrace::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Listens on a port of its own, answers every POST with one status, and keeps the bodies.
class Collector {
 public:
  explicit Collector(int status = 200) : status_(status), socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(socket_, 8), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Collector() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  [[nodiscard]] std::string endpoint() const { return cat("http://127.0.0.1:", port_, "/v1/traces"); }
  /// The spans of all bodies, once there are as many.
  std::vector<json> spans(size_t count) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return spans_.size() >= count; });
    return spans_;
  }
  std::string head() {
    const std::scoped_lock lock(mutex_);
    return head_;
  }
  size_t posts() {
    const std::scoped_lock lock(mutex_);
    return posts_;
  }

 private:
  void run() {
    for (int client = 0; (client = accept(socket_, nullptr, nullptr)) >= 0;) {
      serve(client);
      close(client);
    }
  }

  /// One request of a connection; the answer closes it.
  void serve(int client) {
    std::string text;
    char buffer[4096];
    std::optional<size_t> whole;
    while (!whole || text.size() < *whole) {
      const ssize_t n = read(client, buffer, sizeof buffer);
      if (n <= 0) return;
      text.append(buffer, static_cast<size_t>(n));
      const size_t end = text.find("\r\n\r\n");
      const size_t length = text.find("Content-Length: ");
      if (!whole && end != std::string::npos && length != std::string::npos) {
        whole = end + 4 + std::stoul(text.substr(length + 16));
      }
    }
    const std::string answer = cat("HTTP/1.1 ", status_, " X\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
    EXPECT_EQ(write(client, answer.data(), answer.size()), std::ssize(answer));
    const size_t body = text.find("\r\n\r\n") + 4;
    const std::scoped_lock lock(mutex_);
    ++posts_;
    head_ = text.substr(0, body);
    const json message = json::parse(text.substr(body));
    for (const json& span : message["resourceSpans"][0]["scopeSpans"][0]["spans"]) spans_.push_back(span);
    arrived_.notify_all();
  }

  const int status_;
  const int socket_;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<json> spans_;
  std::string head_;
  size_t posts_ = 0;
  std::thread thread_;
};

/// {"gen_ai.request.model": "m", ...}
json attributes_of(const json& span) {
  json all;
  for (const json& attribute : span["attributes"]) all[attribute["key"]] = attribute["value"].front();
  return all;
}

TEST(TraceContext, ReadsTraceparent) {
  const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const std::optional<TraceContext> context = parse_traceparent(good);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(context->parent_span_id, "b7ad6b7169203331");
  EXPECT_TRUE(context->is_sampled);
  EXPECT_FALSE(parse_traceparent(good.substr(0, 54) + "2")->is_sampled);
  EXPECT_TRUE(parse_traceparent(good.substr(0, 54) + "b")->is_sampled);
  EXPECT_TRUE(parse_traceparent("cc" + good.substr(2) + "-what later versions add"));
  for (const std::string bad : {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
                                "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
                                "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01"}) {
    EXPECT_FALSE(parse_traceparent(bad)) << bad;
  }
  const TraceContext fresh = continue_trace("nonsense", "a=b");
  EXPECT_EQ(fresh.trace_id.size(), 32u);
  EXPECT_EQ(fresh.parent_span_id, "");
  EXPECT_EQ(fresh.state, "");
  EXPECT_NE(fresh.trace_id, continue_trace("", "").trace_id);
}

class Traces : public ::testing::Test {
 protected:
  /// A request with that header, of one token.
  void run_request(TraceExporter& exporter, const std::string& traceparent) {
    Exchange exchange;
    exchange.request.arrived = std::chrono::steady_clock::now() - std::chrono::seconds(10);
    exchange.request.headers = {{"traceparent", traceparent}, {"tracestate", "vendor=1"}};
    exchange.request_id = "req-\"1\"";
    RequestWatch watch(metrics_, log_, &exporter, exchange,
                       {.endpoint = "/v1/chat/completions", .max_tokens = 9, .model = "m"});
    GenerationEvent event;
    event.tokens = {1};
    event.last = true;
    event.usage = {.prompt_tokens = 30,
                   .cached_tokens = 16,
                   .completion_tokens = 1,
                   .queued_seconds = 1,
                   .first_token_seconds = 3,
                   .total_seconds = 7};
    watch.event(0, event);
    watch.end(Outcome::kLength, 200);
  }

  Metrics metrics_{{}};
  RequestLog log_{RequestLog::Format::kText, false};
};

TEST_F(Traces, AGenerationIsASpanWithItsParts) {
  Collector collector;
  TraceExporter exporter(collector.endpoint());
  run_request(exporter, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");  // not to be recorded
  run_request(exporter, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  const std::vector<json> spans = collector.spans(4);
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_THAT(collector.head(), HasSubstr("POST /v1/traces HTTP/1.1"));
  EXPECT_THAT(collector.head(), HasSubstr("Content-Type: application/json"));
  const json& root = spans[0];
  EXPECT_EQ(root["name"], "chat m");
  EXPECT_EQ(root["kind"], 2);
  EXPECT_EQ(root["parentSpanId"], "b7ad6b7169203331");
  EXPECT_EQ(root["traceState"], "vendor=1");
  EXPECT_FALSE(root.contains("status"));
  const json attributes = attributes_of(root);
  EXPECT_EQ(attributes["gen_ai.operation.name"], "chat");
  EXPECT_EQ(attributes["gen_ai.request.model"], "m");
  EXPECT_EQ(attributes["gen_ai.request.max_tokens"], "9");
  EXPECT_EQ(attributes["gen_ai.usage.input_tokens"], "30");
  EXPECT_EQ(attributes["gen_ai.usage.output_tokens"], "1");
  EXPECT_EQ(attributes["gen_ai.response.finish_reasons"]["values"][0]["stringValue"], "length");
  EXPECT_EQ(attributes["http.response.status_code"], "200");
  EXPECT_EQ(attributes["headrace.request_id"], "req-\"1\"");
  const auto time = [](const json& span, const char* which) { return std::stoll(span[which].get<std::string>()); };
  const std::pair<const char*, int64_t> parts[] = {{"queue", 1}, {"prefill", 2}, {"decode", 4}};
  for (size_t i = 0; i < 3; ++i) {
    const json& part = spans[i + 1];
    EXPECT_EQ(part["name"], parts[i].first);
    EXPECT_EQ(part["traceId"], root["traceId"]);
    EXPECT_EQ(part["parentSpanId"], root["spanId"]);
    // The wall clock's tick is exact for the seconds of this test, the times between them are of one clock.
    EXPECT_EQ(time(part, "endTimeUnixNano") - time(part, "startTimeUnixNano"), parts[i].second * 1'000'000'000);
    EXPECT_GE(time(part, "startTimeUnixNano"), time(root, "startTimeUnixNano"));
    EXPECT_LE(time(part, "endTimeUnixNano"), time(root, "endTimeUnixNano"));
  }
}

TEST_F(Traces, WhatWaitsIsSentAtTheEnd) {
  Collector collector;
  { run_request(*std::make_unique<TraceExporter>(collector.endpoint()), ""); }
  EXPECT_EQ(collector.spans(4).size(), 4u);
}

TEST_F(Traces, ADeadCollectorCostsOneWarning) {
  std::string endpoint;
  { endpoint = Collector().endpoint(); }  // nobody listens there any more
  ::testing::internal::CaptureStderr();
  const auto begin = std::chrono::steady_clock::now();
  {
    TraceExporter exporter(endpoint);
    for (int i = 0; i < 5000; ++i) exporter.add({.context = continue_trace("", ""), .begin = {}, .end = {}});
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr(endpoint));
  EXPECT_EQ(text.find("spans are lost"), text.rfind("spans are lost")) << text;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << "it gives up";
}

TEST_F(Traces, ACollectorThatRefusesIsWarnedOfToo) {
  Collector collector(503);
  ::testing::internal::CaptureStderr();
  { run_request(*std::make_unique<TraceExporter>(collector.endpoint()), ""); }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("HTTP 503"));
  EXPECT_EQ(collector.posts(), 1u);
}

TEST_F(Traces, OnlyHttpAddressesAreTaken) {
  for (const std::string bad : {"", "collector:4318", "ftp://a/b", "http://", "file:///etc/passwd"}) {
    EXPECT_THROW(TraceExporter{bad}, Error) << bad;
  }
}

}  // namespace
}  // namespace headrace::server
