// What a client gets that behaves; http_clients_test.cc has those that do not.
#include "server/http_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <future>
#include <thread>

#include "base/error.h"
#include "server/raw_client.h"

namespace headrace::server {
namespace {

using namespace std::chrono_literals;

HttpReply text_reply(std::string body) { return {.body = std::move(body), .content_type = "text/plain"}; }

// Says what was asked.
void echo(HttpRequest&& request, std::shared_ptr<Responder> responder) {
  responder->send(text_reply(request.method + " " + request.path + " ?" + request.query + " " + request.body));
}

void two_pieces(HttpRequest&&, std::shared_ptr<Responder> responder) {
  responder->begin({.content_type = "text/event-stream"});
  responder->write("one");
  responder->write("sixteen bytes...");
  responder->finish();
}

HttpOptions local() { return {.port = 0}; }

TEST(HttpServer, AnswersRequestsOfOneConnectionInOrder) {
  HttpServer server(local(), echo);
  RawClient client(server.port());
  EXPECT_EQ(body_of(client.ask(get("/a%20b?c=%20d"))), "GET /a b ?c=%20d ");
  client.send(get("/1") + post("/2", "xyz") + get("/3"));
  EXPECT_EQ(body_of(client.read_reply()), "GET /1 ? ");
  EXPECT_EQ(body_of(client.read_reply()), "POST /2 ? xyz");
  EXPECT_EQ(body_of(client.read_reply()), "GET /3 ? ");
}

TEST(HttpServer, AnswersRequestsThatCameByteForByte) {
  HttpServer server(local(), echo);
  RawClient client(server.port());
  for (const char byte : post("/1", "abc") + get("/2")) client.send({&byte, 1});
  EXPECT_EQ(body_of(client.read_reply()), "POST /1 ? abc");
  EXPECT_EQ(body_of(client.read_reply()), "GET /2 ? ");
}

TEST(HttpServer, KeepsARequestThatCameEarlyUntilTheFirstIsAnswered) {
  std::promise<std::shared_ptr<Responder>> first;
  HttpServer server(local(), [&](HttpRequest&& request, std::shared_ptr<Responder> responder) {
    if (request.path == "/1") return first.set_value(std::move(responder));
    echo(std::move(request), std::move(responder));
  });
  RawClient client(server.port());
  client.send(get("/1"));
  const std::shared_ptr<Responder> responder = first.get_future().get();
  client.send(get("/2"));
  EXPECT_EQ(server.open_requests(), 1);
  responder->send(text_reply("late"));
  EXPECT_EQ(body_of(client.read_reply()), "late");
  EXPECT_EQ(body_of(client.read_reply()), "GET /2 ? ");
}

TEST(HttpServer, GivesTheHeadOfARequest) {
  std::promise<HttpRequest> got;
  HttpServer server(local(), [&](HttpRequest&& request, std::shared_ptr<Responder> responder) {
    got.set_value(request);
    responder->send({.status = 204, .headers = {{"X-Id", "a\r\nX-Evil: b"}}});
  });
  RawClient client(server.port());
  const auto before = std::chrono::steady_clock::now();
  const std::string reply = client.ask("GET / HTTP/1.1\r\nHost: a\r\nX-Request-ID: r1\r\n\r\n");
  const HttpRequest request = got.get_future().get();
  EXPECT_EQ(request.header("x-request-id"), "r1");
  EXPECT_EQ(request.peer.substr(0, 10), "127.0.0.1:");
  EXPECT_GE(request.arrived, before);
  EXPECT_EQ(reply.find("HTTP/1.1 204 No Content\r\nDate: "), 0U) << reply;
  EXPECT_NE(reply.find("\r\nX-Id: a  X-Evil: b\r\n"), std::string::npos) << reply;
  EXPECT_EQ(reply.find("Content-"), std::string::npos) << reply;
}

TEST(HttpServer, SendsAnswersInPieces) {
  HttpServer server(local(), two_pieces);
  RawClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    const std::string reply = client.ask(get("/"));
    EXPECT_NE(reply.find("Transfer-Encoding: chunked\r\n"), std::string::npos) << reply;
    EXPECT_EQ(body_of(reply), "3\r\none\r\n10\r\nsixteen bytes...\r\n0\r\n\r\n");
  }
}

TEST(HttpServer, SendsPiecesThatWaitInOneWrite) {
  HttpServer server(local(), [](HttpRequest&&, std::shared_ptr<Responder> responder) {
    responder->begin({});
    for (int i = 0; i < 100; ++i) responder->write("piece");
    responder->finish();
  });
  RawClient client(server.port());
  client.send(get("/"));
  const std::string first = client.read_some();
  EXPECT_TRUE(first.ends_with("0\r\n\r\n")) << first;
}

TEST(HttpServer, SendsPiecesAtOnce) {
  std::promise<std::shared_ptr<Responder>> got;
  HttpServer server(local(), [&](HttpRequest&&, std::shared_ptr<Responder> responder) {
    responder->begin({});
    got.set_value(std::move(responder));
  });
  RawClient client(server.port());
  client.send(get("/"));
  client.read_until("\r\n\r\n");
  const std::shared_ptr<Responder> responder = got.get_future().get();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(responder->write("piece"));
    EXPECT_EQ(client.read_until("piece\r\n"), "5\r\npiece\r\n");
  }
  responder->finish();
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
}

TEST(HttpServer, SendsAnswersLargerThanAnyBuffer) {
  std::string large(20 << 20, ' ');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i % 23);
  HttpServer server(local(),
                    [&](HttpRequest&&, std::shared_ptr<Responder> responder) { responder->send(text_reply(large)); });
  RawClient client(server.port());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(body_of(client.ask(get("/"))) == large);
}

TEST(HttpServer, TakesLargeBodies) {
  const std::string large(10 << 20, 'x');
  HttpServer server(local(), [](HttpRequest&& request, std::shared_ptr<Responder> responder) {
    responder->send(text_reply(std::to_string(request.body.size())));
  });
  RawClient client(server.port());
  EXPECT_EQ(body_of(client.ask(post("/", large))), std::to_string(large.size()));
}

TEST(HttpServer, SendsNoBodyForHead) {
  HttpServer server(local(), [](HttpRequest&& request, std::shared_ptr<Responder> responder) {
    if (request.path == "/pieces") return two_pieces(std::move(request), std::move(responder));
    responder->send(text_reply("twelve bytes"));
  });
  RawClient client(server.port());
  client.send("HEAD /pieces HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + get("/"));
  EXPECT_NE(client.read_until("\r\n\r\n").find("chunked"), std::string::npos);
  EXPECT_NE(client.read_until("\r\n\r\n").find("Content-Length: 12"), std::string::npos);
  EXPECT_EQ(body_of(client.read_reply()), "twelve bytes");
}

TEST(HttpServer, SpeaksHttp10) {
  HttpServer server(local(), [](HttpRequest&& request, std::shared_ptr<Responder> responder) {
    if (request.path == "/pieces") return two_pieces(std::move(request), std::move(responder));
    echo(std::move(request), std::move(responder));
  });
  RawClient client(server.port());
  const std::string kept = client.ask("GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_NE(kept.find("\r\nConnection: keep-alive\r\n"), std::string::npos) << kept;
  client.send("GET /pieces HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string pieces = client.read_all();
  EXPECT_NE(pieces.find("\r\nConnection: close\r\n"), std::string::npos) << pieces;
  EXPECT_EQ(body_of(pieces), "onesixteen bytes...");
  RawClient other(server.port());
  other.send("GET /2 HTTP/1.0\r\n\r\n");
  EXPECT_EQ(body_of(other.read_all()), "GET /2 ? ");
}

TEST(HttpServer, ClosesWhenTheClientSaysSo) {
  HttpServer server(local(), echo);
  RawClient client(server.port());
  client.send("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + get("/2"));
  const std::string all = client.read_all();
  EXPECT_NE(all.find("\r\nConnection: close\r\n"), std::string::npos) << all;
  EXPECT_EQ(body_of(all), "GET /1 ? ");
  EXPECT_FALSE(client.was_reset());
}

TEST(HttpServer, AsksForABodyThatTheClientHoldsBack) {
  HttpServer server({.port = 0, .max_body_bytes = 10}, echo);
  RawClient client(server.port());
  client.send("POST /1 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(body_of(client.ask("hello")), "POST /1 ? hello");
  const std::string refused =
      client.ask("POST /2 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n");
  EXPECT_EQ(status_of(refused), 413) << refused;
  EXPECT_EQ(client.read_all(), "");
}

TEST(HttpServer, AnswersAFailingHandlerWith500) {
  HttpOptions options = local();
  options.fault_reply = [](int status, const std::string& message) {
    return HttpReply{.status = status, .body = "{" + message + "}"};
  };
  HttpServer server(options, [](HttpRequest&& request, std::shared_ptr<Responder> responder) {
    if (request.path == "/begun") {
      responder->begin({});
      responder->write("part");
    }
    throw std::runtime_error("broken");
  });
  RawClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    const std::string reply = client.ask(get("/"));
    EXPECT_EQ(status_of(reply), 500);
    EXPECT_EQ(body_of(reply), "{broken}");
  }
  client.send(get("/begun"));
  EXPECT_EQ(body_of(client.read_all()), "4\r\npart\r\n");
}

TEST(HttpServer, ClosesWhereNoAnswerIsGiven) {
  HttpServer server(local(), [](HttpRequest&& request, std::shared_ptr<Responder> responder) {
    if (request.path == "/dropped") return;
    responder->begin({});
    responder->write("part");
    responder->abort();
    EXPECT_TRUE(responder->write("more"));
    responder->finish();
  });
  RawClient client(server.port());
  client.send(get("/dropped"));
  EXPECT_EQ(client.read_all(), "");
  RawClient other(server.port());
  other.send(get("/aborted"));
  EXPECT_EQ(body_of(other.read_all()), "4\r\npart\r\n");
  EXPECT_FALSE(other.was_reset());
}

TEST(HttpServer, RunsJobs) {
  std::promise<void> done;
  HttpServer server(local(), echo);
  server.post([] { throw std::runtime_error("a job that fails harms no other"); });
  server.post([] { throw std::runtime_error("on no thread"); });
  server.post([&] { done.set_value(); });
  EXPECT_EQ(done.get_future().wait_for(10s), std::future_status::ready);
}

TEST(HttpServer, CostsNothingWhileNothingHappens) {
  std::promise<std::shared_ptr<Responder>> got;
  HttpServer server(local(),
                    [&](HttpRequest&&, std::shared_ptr<Responder> responder) { got.set_value(std::move(responder)); });
  std::vector<RawClient> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(server.port());
  clients[0].send(get("/"));
  clients[1].send("GET / HT");
  const std::shared_ptr<Responder> responder = got.get_future().get();
  responder->begin({});
  std::this_thread::sleep_for(50ms);
  const auto cpu_us = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000 + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
  };
  const auto before = cpu_us();
  std::this_thread::sleep_for(300ms);
  // A loop that spins would take 300 ms.
  EXPECT_LT(cpu_us() - before, 60'000);
}

TEST(HttpServer, NamesWhatItCannotListenOn) {
  HttpServer server(local(), echo);
  const auto message = [](HttpOptions options) {
    try {
      const HttpServer refused(std::move(options), echo);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(message({.port = server.port()}),
            "cannot listen on " + address + ": Address already in use; end what listens there, or take another --port");
  EXPECT_NE(message({.host = "no host", .port = 0}).find("cannot listen on no host:0: no such host"),
            std::string::npos);
  HttpServer by_name({.host = "localhost", .port = 0}, echo);
  EXPECT_NE(by_name.port(), 0);
}

}  // namespace
}  // namespace headrace::server
