// Clients that go, that are slow, that send nonsense, and what a server does when it ends.
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include "server/http_server.h"
#include "server/raw_client.h"

namespace headrace::server {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

HttpOptions local() { return {.port = 0}; }

void say_hello(HttpRequest&&, std::shared_ptr<Responder> responder) {
  responder->send({.body = "hello", .content_type = "text/plain"});
}

bool soon(const std::function<bool()>& condition) {
  for (const auto end = Clock::now() + RawClient::kPatience; Clock::now() < end; std::this_thread::sleep_for(1ms)) {
    if (condition()) return true;
  }
  return false;
}

// A server that keeps the responder of its last request for the test, and tells whether its client has gone.
class Held {
 public:
  explicit Held(HttpOptions options = local())
      : server_(std::make_unique<HttpServer>(std::move(options),
                                             [this](HttpRequest&& request, std::shared_ptr<Responder> responder) {
                                               if (request.path != "/held")
                                                 return say_hello(std::move(request), std::move(responder));
                                               responder->on_gone([this] { ++gone_; });
                                               const std::scoped_lock lock(mutex_);
                                               responder_ = std::move(responder);
                                               arrived_.notify_all();
                                             })) {}
  // The server first: its threads use the rest.
  ~Held() { server_.reset(); }

  HttpServer& server() { return *server_; }
  void end_server() { server_.reset(); }
  std::shared_ptr<Responder> responder() {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, RawClient::kPatience, [&] { return responder_ != nullptr; });
    return std::exchange(responder_, nullptr);
  }
  bool goes() {
    return soon([&] { return gone_ > 0; });
  }
  int gone() const { return gone_; }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::shared_ptr<Responder> responder_;
  std::atomic<int> gone_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST(HttpClients, AreMissedWhileTheirAnswerIsMade) {
  for (const std::string how :
       {"close", "reset", "half close", "close after a begun answer", "close after an early request"}) {
    SCOPED_TRACE(how);
    Held held;
    RawClient client(held.server().port());
    client.send(get("/held"));
    const std::shared_ptr<Responder> responder = held.responder();
    if (how.ends_with("answer")) {
      responder->begin({});
      client.read_until("\r\n\r\n");
    }
    if (how.ends_with("request")) client.send(get("/") + "GET");
    EXPECT_EQ(held.gone(), 0);
    if (how == "reset") {
      client.reset();
    } else if (how == "half close") {
      client.half_close();
    } else {
      client.close();
    }
    EXPECT_TRUE(held.goes());
    EXPECT_EQ(held.server().open_requests(), 0);
    responder->begin({});
    EXPECT_FALSE(responder->write("piece"));
    responder->finish();
    bool told = false;
    responder->on_gone([&] { told = true; });
    EXPECT_TRUE(told);
    EXPECT_EQ(held.gone(), 1);
  }
}

TEST(HttpClients, AreNotMissedAfterACompleteAnswer) {
  Held held;
  RawClient client(held.server().port());
  client.send(get("/held"));
  held.responder()->send({.body = "all"});
  EXPECT_EQ(body_of(client.read_reply()), "all");
  client.close();
  RawClient other(held.server().port());
  EXPECT_EQ(body_of(other.ask(get("/"))), "hello");
  EXPECT_EQ(held.gone(), 0);
}

TEST(HttpClients, ThatSendNothingMoreGetAnAnswerThatIsComplete) {
  HttpServer server(local(), say_hello);
  RawClient client(server.port());
  client.send(get("/"));
  client.half_close();
  EXPECT_EQ(body_of(client.read_all()), "hello");
}

TEST(HttpClients, ThatDoNotReadAreCutOffAndHoldUpNobody) {
  HttpOptions options = local();
  options.threads = 1;
  options.max_unsent_bytes = 256 << 10;
  Held held(options);
  RawClient slow(held.server().port(), 4096);
  slow.send(get("/held"));
  const std::shared_ptr<Responder> responder = held.responder();
  responder->begin({});
  const std::string piece(16 << 10, 'x');
  size_t written = 0;
  auto longest = Clock::duration::zero();
  // Far more than the kernel takes and max_unsent_bytes together.
  while (written < (64 << 20)) {
    const auto begin = Clock::now();
    if (!responder->write(piece)) break;
    longest = std::max(longest, Clock::now() - begin);
    written += piece.size();
  }
  EXPECT_LT(written, 64 << 20);
  EXPECT_LT(longest, 5s);
  RawClient other(held.server().port());
  EXPECT_EQ(body_of(other.ask(get("/"))), "hello");
  EXPECT_TRUE(held.goes());
  slow.read_all();
  EXPECT_TRUE(slow.was_reset());
}

TEST(HttpClients, ThatTakeNothingForTooLongAreCutOff) {
  HttpOptions options = local();
  options.write_timeout = 200ms;
  Held held(options);
  RawClient slow(held.server().port(), 4096);
  slow.send(get("/held"));
  held.responder()->send({.body = std::string(16 << 20, 'x')});
  EXPECT_TRUE(soon([&] { return held.server().open_requests() == 0; }));
  slow.read_all();
  EXPECT_TRUE(slow.was_reset());
}

TEST(HttpClients, ThatSendTooSlowlyAreTold) {
  HttpOptions options = local();
  options.header_timeout = 200ms;
  options.body_timeout = 200ms;
  HttpServer server(options, say_hello);
  RawClient head(server.port());
  const auto begin = Clock::now();
  // A byte now and then does not help.
  while (head.send("G") && Clock::now() < begin + 150ms) std::this_thread::sleep_for(20ms);
  EXPECT_EQ(status_of(head.read_all()), 408);
  EXPECT_GE(Clock::now() - begin, 200ms);
  RawClient body(server.port());
  body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na");
  EXPECT_EQ(status_of(body.read_all()), 408);
}

TEST(HttpClients, ThatAskNothingAreLeft) {
  HttpOptions options = local();
  options.idle_timeout = 100ms;
  HttpServer server(options, say_hello);
  RawClient silent(server.port());
  RawClient client(server.port());
  EXPECT_EQ(body_of(client.ask(get("/"))), "hello");
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(silent.read_all(), "");
}

TEST(HttpClients, ThatSendTooMuchAreTold) {
  HttpOptions options = local();
  options.max_body_bytes = 1000;
  options.max_header_bytes = 1000;
  HttpServer server(options, say_hello);
  const auto answer_to = [&](const std::string& request) {
    RawClient client(server.port());
    client.send(request);
    const std::string all = client.read_all();
    EXPECT_FALSE(client.was_reset());
    EXPECT_NE(all.find("\r\nConnection: close\r\n"), std::string::npos) << all;
    return status_of(all);
  };
  EXPECT_EQ(answer_to("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x')), 431);
  // All of it is sent, and the answer is read after that.
  EXPECT_EQ(answer_to(post("/", std::string(8 << 20, 'x'))), 413);
  EXPECT_EQ(answer_to("nonsense\r\n\r\n" + std::string(8 << 20, 'x')), 400);
  RawClient early(server.port());
  early.send(get("/") + get("/"));
  EXPECT_EQ(body_of(early.read_reply()), "hello");
}

TEST(HttpClients, ThatAreTooManyAreTold) {
  HttpOptions options = local();
  options.max_connections = 2;
  HttpServer server(options, say_hello);
  RawClient first(server.port());
  auto second = std::make_unique<RawClient>(server.port());
  EXPECT_EQ(status_of(first.ask(get("/"))), 200);
  EXPECT_EQ(status_of(second->ask(get("/"))), 200);
  RawClient third(server.port());
  EXPECT_EQ(status_of(third.ask(get("/"))), 503);
  EXPECT_EQ(third.read_all(), "");
  third.close();
  second.reset();
  EXPECT_TRUE(soon([&] {
    RawClient again(server.port());
    return status_of(again.ask(get("/"))) == 200;
  }));
}

TEST(HttpClients, MayGoAtAnyByte) {
  HttpOptions options = local();
  options.max_connections = 8;  // one that were not given back would be noticed
  Held held(options);
  const uint16_t port = held.server().port();
  const std::string request = post("/", "body") + get("/");
  RawClient whole(port);
  whole.send(request);
  const size_t reply_bytes = whole.read_reply().size();
  whole.close();
  for (const bool reset : {false, true}) {
    const auto leave = [&](RawClient& client) { reset ? client.reset() : client.close(); };
    for (size_t bytes = 0; bytes <= request.size(); ++bytes) {
      RawClient client(port);
      client.send(std::string_view(request).substr(0, bytes));
      leave(client);
    }
    for (size_t bytes = 1; bytes <= 2 * reply_bytes; ++bytes) {
      RawClient client(port, 2048);
      client.send(request);
      client.read_bytes(bytes);
      leave(client);
    }
    for (size_t bytes = 0; bytes < 60; ++bytes) {
      RawClient client(port);
      client.send(get("/held"));
      const std::shared_ptr<Responder> responder = held.responder();
      responder->begin({});
      client.read_until("\r\n\r\n");
      responder->write(std::string(100, 'x'));
      client.read_bytes(bytes);
      leave(client);
      EXPECT_TRUE(soon([&] { return !responder->write("x"); }));
    }
  }
  EXPECT_TRUE(soon([&] { return held.server().open_requests() == 0; }));
  EXPECT_TRUE(soon([&] {
    RawClient client(port);
    return status_of(client.ask(get("/"))) == 200;
  }));
}

TEST(HttpClients, MaySendAnyBytes) {
  HttpServer server(local(), say_hello);
  std::mt19937 random(11);
  const std::string whole = post("/", "body");
  for (int round = 0; round < 300; ++round) {
    std::string bytes = round % 2 == 0 ? std::string() : whole;
    for (size_t i = random() % 300; i > 0; --i)
      bytes.insert(random() % (bytes.size() + 1), 1, static_cast<char>(random()));
    RawClient client(server.port());
    client.send(bytes);
    client.half_close();
    client.read_all();
  }
  RawClient client(server.port());
  EXPECT_EQ(body_of(client.ask(get("/"))), "hello");
}

// Pieces from several threads, clients that come and go: for the sanitizers.
TEST(HttpClients, MayComeAndGoWhileOthersWrite) {
  HttpServer server(local(), [](HttpRequest&&, std::shared_ptr<Responder> responder) {
    std::thread([responder = std::move(responder)] {
      const auto gone = std::make_shared<std::atomic<bool>>(false);
      responder->on_gone([gone, responder] { *gone = true; });
      responder->begin({});
      for (int i = 0; i < 50 && !*gone && responder->write("a piece of an answer"); ++i) std::this_thread::yield();
      responder->finish();
    }).detach();
  });
  std::vector<std::thread> clients;
  for (size_t c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (size_t round = 0; round < 25; ++round) {
        RawClient client(server.port());
        client.send(get("/"));
        if ((round + c) % 3 == 0) {
          client.read_bytes(100 + round);
          client.reset();
        } else {
          client.read_reply();
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(soon([&] { return server.open_requests() == 0; }));
}

TEST(HttpServerEnd, DrainsByAnsweringWhatHasBegun) {
  Held held;
  RawClient idle(held.server().port());
  RawClient busy(held.server().port());
  RawClient streaming(held.server().port());
  EXPECT_EQ(body_of(idle.ask(get("/"))), "hello");
  streaming.send(get("/held"));
  const std::shared_ptr<Responder> begun = held.responder();
  begun->begin({});
  streaming.read_until("\r\n\r\n");
  busy.send(get("/held"));
  const std::shared_ptr<Responder> responder = held.responder();
  held.server().begin_drain();
  EXPECT_EQ(idle.read_all(), "");
  RawClient late(held.server().port());
  late.send(get("/"));
  const std::string told = late.read_all();
  EXPECT_EQ(body_of(told), "hello");
  EXPECT_NE(told.find("\r\nConnection: close\r\n"), std::string::npos) << told;
  EXPECT_EQ(held.server().open_requests(), 2);
  responder->send({.body = "last words"});
  begun->write("end");
  begun->finish();
  EXPECT_EQ(body_of(busy.read_all()), "last words");
  EXPECT_EQ(streaming.read_all(), "3\r\nend\r\n0\r\n\r\n");
  EXPECT_EQ(held.server().open_requests(), 0);
  EXPECT_EQ(held.gone(), 0);
}

TEST(HttpServerEnd, StopClosesEverything) {
  Held held;
  RawClient idle(held.server().port());
  RawClient busy(held.server().port());
  busy.send(get("/held"));
  const std::shared_ptr<Responder> responder = held.responder();
  held.server().stop();
  EXPECT_TRUE(held.goes());
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_EQ(busy.read_all(), "");
  EXPECT_FALSE(responder->write("more"));
}

TEST(HttpServerEnd, IsSurvivedByResponders) {
  Held held;
  RawClient client(held.server().port());
  client.send(get("/held"));
  const std::shared_ptr<Responder> responder = held.responder();
  responder->begin({});
  held.end_server();
  EXPECT_EQ(held.gone(), 1);
  EXPECT_FALSE(responder->write("more"));
  responder->finish();
}

}  // namespace
}  // namespace headrace::server
