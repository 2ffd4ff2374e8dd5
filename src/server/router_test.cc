#include "server/router.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "server/fake_responder.h"

namespace headrace::server {
namespace {

/// A server without a model and without sockets.
class RouterTest : public testing::Test {
 protected:
  HttpReply ask(std::string method, std::string path, std::vector<Header> headers = {}) {
    const auto responder = std::make_shared<FakeResponder>();
    Router(context).handle({.method = std::move(method),
                            .path = std::move(path),
                            .query = {},
                            .headers = std::move(headers),
                            .body = {},
                            .peer = {},
                            .arrived = std::chrono::steady_clock::now()},
                           responder);
    EXPECT_TRUE(responder->ended);
    return responder->reply;
  }
  static std::string header_of(const HttpReply& reply, std::string_view name) {
    for (const Header& header : reply.headers) {
      if (header.name == name) return header.value;
    }
    return {};
  }
  static std::string code_of(const HttpReply& reply) { return nlohmann::json::parse(reply.body)["error"]["code"]; }

  ServeOptions options{.log_requests = false};
  ServerContext context{options, {.post = [](const auto&) {}, .connections = [] { return ConnectionFigures(); }}};
};

class KeyedRouterTest : public RouterTest {
 protected:
  KeyedRouterTest() {
    char path[] = "/tmp/router_test_XXXXXX";
    const int fd = mkstemp(path);
    fchmod(fd, 0600);
    close(fd);
    std::ofstream(path) << "user name=user rpm=6\nadmin admin\nscraper metrics\n";
    context.keys = KeyRing::load(path);
    std::remove(path);
  }
};

TEST(PathFits, WholePathsAndWhatFollows) {
  EXPECT_TRUE(path_fits("/v1/models", "/v1/models"));
  EXPECT_FALSE(path_fits("/v1/models", "/v1/models/"));
  EXPECT_TRUE(path_fits("/v1/models/*", "/v1/models/a/b"));
  EXPECT_FALSE(path_fits("/v1/models/*", "/v1/models/"));
  EXPECT_FALSE(path_fits("/v1/models/*", "/v1/modelsx"));
}

TEST_F(KeyedRouterTest, WithoutAKeyOnlyHealthIsOpen) {
  int closed = 0;
  for (const Route& route : all_routes()) {
    std::string path(route.path);
    if (path.ends_with('*')) path.back() = 'x';
    const HttpReply reply = ask(std::string(route.method), path);
    if (route.access == Access::kOpen) {
      EXPECT_NE(reply.status, 401) << path;
      EXPECT_TRUE(path == "/livez" || path == "/readyz" || path == "/health" || path == "/ping") << path;
      continue;
    }
    ++closed;
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(code_of(reply), "invalid_api_key");
    EXPECT_EQ(header_of(reply, "WWW-Authenticate").starts_with("Basic"), route.is_page) << path;
  }
  EXPECT_GT(closed, 8);
  for (const char* path : {"/nowhere", "/v1", "/v1/../metrics", "//metrics"}) EXPECT_EQ(ask("GET", path).status, 401);
  EXPECT_EQ(ask("DELETE", "/v1/models").status, 401);
}

TEST_F(KeyedRouterTest, MetricsAreForThoseWhoMayReadThem) {
  EXPECT_EQ(ask("GET", "/metrics", {{"x-api-key", "user"}}).status, 403);
  EXPECT_EQ(ask("GET", "/metrics", {{"x-api-key", "admin"}}).status, 200);
  EXPECT_EQ(ask("GET", "/metrics", {{"x-api-key", "scraper"}}).status, 200);
  EXPECT_EQ(ask("GET", "/version", {{"x-api-key", "user"}}).status, 200);
}

TEST_F(RouterTest, WhatIsNotThere) {
  EXPECT_EQ(ask("GET", "/nowhere").status, 404);
  const HttpReply reply = ask("GET", "/v1/completions");
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(header_of(reply, "Allow"), "POST");
  EXPECT_EQ(ask("HEAD", "/livez").status, 200);
}

TEST_F(RouterTest, WithoutAModel) {
  const HttpReply reply = ask("POST", "/v1/completions");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(code_of(reply), "loading");
  EXPECT_FALSE(header_of(reply, "Retry-After").empty());
  context.state.begin_drain();
  EXPECT_EQ(code_of(ask("POST", "/v1/completions")), "draining");
  context.state.set_failed();
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_EQ(ask("GET", "/livez").status, 200);
}

TEST_F(RouterTest, EveryAnswerHasARequestId) {
  EXPECT_EQ(header_of(ask("GET", "/livez", {{"x-request-id", "mine-1"}}), "x-request-id"), "mine-1");
  EXPECT_EQ(header_of(ask("GET", "/nowhere", {{"x-request-id", "mine-1"}}), "x-request-id"), "mine-1");
  for (const std::string& bad : {std::string("a b"), std::string("a\nb"), std::string(129, 'a'), std::string()}) {
    const std::string made = header_of(ask("GET", "/livez", {{"x-request-id", bad}}), "x-request-id");
    EXPECT_TRUE(made.starts_with("req-")) << made;
  }
}

TEST_F(RouterTest, WebPagesOfElsewhere) {
  const std::vector<Header> elsewhere{{"origin", "https://evil.example"}, {"host", "127.0.0.1:8000"}};
  EXPECT_EQ(ask("GET", "/version", elsewhere).status, 403);
  EXPECT_EQ(ask("OPTIONS", "/v1/completions", elsewhere).status, 403);
  const std::vector<Header> own{{"origin", "http://127.0.0.1:8000"}, {"host", "127.0.0.1:8000"}};
  EXPECT_EQ(ask("GET", "/version", own).status, 200);

  options.allowed_origins = {"https://friend.example"};
  const std::vector<Header> friendly{{"origin", "https://friend.example"}, {"access-control-request-method", "POST"}};
  const HttpReply preflight = ask("OPTIONS", "/v1/completions", friendly);
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(header_of(preflight, "Access-Control-Allow-Origin"), "https://friend.example");
  EXPECT_EQ(ask("GET", "/version", elsewhere).status, 403);
}

TEST_F(RouterTest, ThePageMayLoadNothingFromElsewhere) {
  const HttpReply reply = ask("GET", "/");
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.content_type.starts_with("text/html"));
  EXPECT_NE(header_of(reply, "Content-Security-Policy").find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(ask("GET", "/page/style.css").content_type, "text/css; charset=utf-8");
  EXPECT_EQ(ask("GET", "/page/../server.cc").status, 404);
}

}  // namespace
}  // namespace headrace::server
