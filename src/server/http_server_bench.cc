// What a piece of an answer costs: each step of 20 ms, a job writes a piece to every stream, as the engine's events do;
// beside it, the same bytes by plain send() on as many sockets. The clients are a process of their own.
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <future>
#include <thread>
#include <vector>

#include "server/http_server.h"
#include "server/raw_client.h"

namespace {

using namespace headrace::server;
using namespace std::chrono_literals;

constexpr size_t kStreams = 32;
constexpr int kSteps = 250;
constexpr auto kStep = 20ms;
const std::string kPiece(180, 'x');  // about an event of one token

struct Used {
  double cpu_us;
  double waits;
};
Used used() {
  rusage now{};
  getrusage(RUSAGE_SELF, &now);
  const auto us = [](const timeval& t) { return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec); };
  return {us(now.ru_utime) + us(now.ru_stime), static_cast<double>(now.ru_nvcsw)};
}

// A process whose clients each send `request` and read until they are cut off.
pid_t start_clients(uint16_t port, const std::string& request) {
  const pid_t child = fork();
  if (child != 0) return child;
  std::vector<RawClient> clients;
  for (size_t i = 0; i < kStreams; ++i) {
    clients.emplace_back(port);
    clients.back().send(request);
  }
  std::vector<pollfd> waiting;
  for (const RawClient& client : clients) waiting.push_back({client.fd(), POLLIN, 0});
  char bytes[65536];
  for (;;) {
    poll(waiting.data(), waiting.size(), -1);
    for (const pollfd& one : waiting) {
      if (one.revents != 0 && recv(one.fd, bytes, sizeof bytes, 0) <= 0) _exit(0);
    }
  }
}

template <class Step>
void measure(std::string_view name, const Step& step) {
  const Used before = used();
  auto next = std::chrono::steady_clock::now();
  for (int i = 0; i < kSteps; ++i) {
    step();
    std::this_thread::sleep_until(next += kStep);
  }
  const Used after = used();
  fmt::print("{:<24} {:6.2f} us of CPU a piece, {:5.1f} waits a step\n", name,
             (after.cpu_us - before.cpu_us) / (kSteps * kStreams), (after.waits - before.waits) / kSteps);
}

void measure_send() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(listener, reinterpret_cast<const sockaddr*>(&address), size);
  listen(listener, kStreams);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const pid_t child = start_clients(ntohs(address.sin_port), "");
  std::vector<int> sockets;
  const int on = 1;
  for (size_t i = 0; i < kStreams; ++i) {
    sockets.push_back(accept(listener, nullptr, nullptr));
    setsockopt(sockets.back(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  measure("send()", [&] {
    for (const int one : sockets) (void)send(one, kPiece.data(), kPiece.size(), MSG_NOSIGNAL);
  });
  for (const int one : sockets) close(one);
  waitpid(child, nullptr, 0);
}

void measure_server(int threads) {
  std::mutex mutex;
  std::vector<std::shared_ptr<Responder>> responders;
  std::promise<void> all_there;
  HttpServer server({.port = 0, .threads = threads}, [&](HttpRequest&&, std::shared_ptr<Responder> responder) {
    responder->begin({});
    const std::scoped_lock lock(mutex);
    responders.push_back(std::move(responder));
    if (responders.size() == kStreams) all_there.set_value();
  });
  const pid_t child = start_clients(server.port(), get("/"));
  all_there.get_future().get();
  measure(fmt::format("server, {} threads", threads), [&] {
    server.post([&] {
      for (const auto& responder : responders) responder->write(kPiece);
    });
  });
  server.stop();
  waitpid(child, nullptr, 0);
}

}  // namespace

int main() {
  measure_send();
  for (const int threads : {1, 2, 4}) measure_server(threads);
  return 0;
}
