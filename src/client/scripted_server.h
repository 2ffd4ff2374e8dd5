#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/cat.h"

namespace headrace::client {

/// What a test's server sends: bytes, each part after a pause.
struct ScriptedPart {
  std::string bytes;
  int pause_ms = 0;
};
struct ScriptedAnswer {
  std::vector<ScriptedPart> parts;
  bool close = false;  ///< the connection, after the last part
};

/// A server on a loopback port that answers with bytes of the test's choice, right or wrong, one thread a connection.
class ScriptedServer {
 public:
  struct Request {
    std::string path, body;
    int number = 0;  ///< of all requests to this server, from 0
  };
  using Script = std::function<ScriptedAnswer(const Request&)>;

  explicit ScriptedServer(Script script) : script_(std::move(script)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_, generic, size), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    EXPECT_EQ(::getsockname(listener_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
    ::close(listener_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] std::string url() const { return cat("http://127.0.0.1:", port_); }
  [[nodiscard]] int num_connections() const { return connections_; }
  [[nodiscard]] std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void accept_all() {
    for (;;) {
      const int fd = ::accept(listener_, nullptr, nullptr);
      if (fd < 0 || stopping_) {
        if (fd >= 0) ::close(fd);
        return;
      }
      const int at_once = 1;  // each part leaves when it is sent
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
      ++connections_;
      const std::lock_guard lock(mutex_);
      open_.push_back(fd);
      threads_.emplace_back([this, fd] {
        serve(fd);
        const std::lock_guard inner(mutex_);
        std::erase(open_, fd);
        ::close(fd);
      });
    }
  }

  /// Reads until the head and the body that it announces are there; false: the client has gone.
  static bool read_request(int fd, std::string& buffer, Request& request) {
    for (;;) {
      if (const size_t head = buffer.find("\r\n\r\n"); head != std::string::npos) {
        constexpr std::string_view kLength = "Content-Length: ";
        const size_t at = buffer.find(kLength);
        const size_t length = at < head ? std::stoul(buffer.substr(at + kLength.size())) : 0;
        if (buffer.size() >= head + 4 + length) {
          const size_t path = buffer.find(' ') + 1;
          request.path = buffer.substr(path, buffer.find(' ', path) - path);
          request.body = buffer.substr(head + 4, length);
          buffer.erase(0, head + 4 + length);
          return true;
        }
      }
      char bytes[65536];
      const ssize_t got = ::recv(fd, bytes, sizeof bytes, 0);
      if (got <= 0) return false;
      buffer.append(bytes, static_cast<size_t>(got));
    }
  }

  /// Sleeps, but not longer than the server lives.
  void pause(int milliseconds) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (!stopping_ && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(
          std::min<std::chrono::nanoseconds>(std::chrono::milliseconds(10), until - std::chrono::steady_clock::now()));
    }
  }

  void serve(int fd) {
    std::string buffer;
    Request request;
    while (read_request(fd, buffer, request)) {
      {
        const std::lock_guard lock(mutex_);
        request.number = static_cast<int>(requests_.size());
        requests_.push_back(request);
      }
      const ScriptedAnswer answer = script_(request);
      for (const ScriptedPart& part : answer.parts) {
        pause(part.pause_ms);
        for (size_t sent = 0; sent < part.bytes.size();) {
          const ssize_t count = ::send(fd, part.bytes.data() + sent, part.bytes.size() - sent, MSG_NOSIGNAL);
          if (count <= 0) return;
          sent += static_cast<size_t>(count);
        }
      }
      if (answer.close) return;
    }
  }

  Script script_;
  int listener_;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::vector<int> open_;
  std::list<std::thread> threads_;
  std::thread acceptor_;
};

/// An answer in one part.
inline ScriptedAnswer whole_answer(int status, std::string_view body) {
  return {.parts = {{cat("HTTP/1.1 ", status, " Something\r\nContent-Type: application/json\r\nContent-Length: ",
                         body.size(), "\r\n\r\n", body)}}};
}

/// One chunk of a chunked body.
inline std::string http_chunk(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string size;
  for (size_t left = bytes.size(); left > 0; left /= 16) size.insert(size.begin(), kDigits[left % 16]);
  return cat(size, "\r\n", bytes, "\r\n");
}
inline constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
inline constexpr std::string_view kStreamEnd = "0\r\n\r\n";

/// A stream of text completion with these pieces of text, each after `pause_ms`, that ends as it should.
inline ScriptedAnswer stream_answer(const std::vector<std::string>& pieces, int pause_ms, int64_t prompt_tokens = 5) {
  ScriptedAnswer answer{.parts = {{std::string(kStreamHead)}}};
  for (size_t i = 0; i < pieces.size(); ++i) {
    answer.parts.push_back({http_chunk(cat("data: {\"choices\":[{\"index\":0,\"text\":\"", pieces[i],
                                           "\",\"finish_reason\":", i + 1 == pieces.size() ? "\"length\"" : "null",
                                           "}],\"usage\":null}\n\n")),
                            pause_ms});
  }
  answer.parts.push_back({cat(http_chunk(cat("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":", prompt_tokens,
                                             ",\"completion_tokens\":", pieces.size(), "}}\n\n")),
                              http_chunk("data: [DONE]\n\n"), kStreamEnd)});
  return answer;
}

}  // namespace headrace::client
