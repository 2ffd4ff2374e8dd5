#include "server/http_server.h"

#include <gtest/gtest.h>

#include "server/raw_client.h"

namespace headrace::server {
namespace {

using namespace std::chrono_literals;
using testing::Test;

HttpReply text_reply(std::string body) { return {.body = std::move(body), .content_type = "text/plain"}; }

// Says what was asked.
void echo(HttpRequest&& request, std::shared_ptr<Responder> responder) {
  responder->send(text_reply(request.method + " " + request.path + " ?" + request.query + " " + request.body));
}

HttpOptions local() { return {.port = 0}; }

std::string body_of(const std::string& reply) { return reply.substr(reply.find("\r\n\r\n") + 4); }
std::string get(std::string_view path) { return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n"; }

TEST(HttpServer, AnswersRequestsOfOneConnectionInOrder) {
  HttpServer server(local(), echo);
  RawClient client(server.port());
  EXPECT_EQ(body_of(client.ask(get("/a%20b?c=%20d"))), "GET /a b ?c=%20d ");
  client.send(get("/1") + "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz" + get("/3"));
  EXPECT_EQ(body_of(client.read_reply()), "GET /1 ? ");
  EXPECT_EQ(body_of(client.read_reply()), "POST /2 ? xyz");
  EXPECT_EQ(body_of(client.read_reply()), "GET /3 ? ");
}

TEST(HttpServer, SendsAnswersInPieces) {
  HttpServer server(local(), [](HttpRequest&&, std::shared_ptr<Responder> responder) {
    responder->begin({.content_type = "text/event-stream"});
    responder->write("one");
    responder->write("sixteen bytes...");
    responder->finish();
  });
  RawClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    const std::string reply = client.ask(get("/"));
    EXPECT_NE(reply.find("Transfer-Encoding: chunked\r\n"), std::string::npos) << reply;
    EXPECT_EQ(body_of(reply), "3\r\none\r\n10\r\nsixteen bytes...\r\n0\r\n\r\n");
  }
}

}  // namespace
}  // namespace headrace::server
