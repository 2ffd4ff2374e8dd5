#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace headrace::server {

inline std::string get(std::string_view path) { return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n"; }
inline std::string post(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}
inline int status_of(std::string_view reply) {
  return reply.size() < 12 ? 0 : std::atoi(std::string(reply.substr(9, 3)).c_str());
}
inline std::string body_of(std::string_view reply) {
  const size_t head_end = reply.find("\r\n\r\n");
  return head_end == std::string_view::npos ? "" : std::string(reply.substr(head_end + 4));
}

/// For tests: a client that sends what it is told, byte for byte, and waits for at most `patience`.
class RawClient {
 public:
  static constexpr std::chrono::milliseconds kPatience{10'000};

  /// `receive_bytes`: of the kernel's buffer; 0: as it is.
  explicit RawClient(uint16_t port, int receive_bytes = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_bytes > 0) setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close();
      throw std::runtime_error(std::string("cannot connect: ") + std::strerror(errno));
    }
  }
  ~RawClient() { close(); }
  RawClient(RawClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)), kept_(std::move(other.kept_)) {}
  RawClient& operator=(RawClient&&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }

  /// False: the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void half_close() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void reset() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }

  /// What has come, up to and with `end`; throws if the server closes or falls silent before.
  std::string read_until(std::string_view end) {
    for (;;) {
      const size_t at = kept_.find(end);
      if (at != std::string::npos) return take(at + end.size());
      if (!receive()) throw std::runtime_error("closed before \"" + std::string(end) + "\": \"" + kept_ + "\"");
    }
  }
  std::string read_bytes(size_t count) {
    while (kept_.size() < count) {
      if (!receive()) throw std::runtime_error("closed after \"" + kept_ + "\"");
    }
    return take(count);
  }
  /// All until the server closes.
  std::string read_all() {
    while (receive()) {
    }
    return take(kept_.size());
  }
  /// A whole answer with Content-Length, or in chunks: head and body as they came.
  std::string read_reply() {
    std::string head = read_until("\r\n\r\n");
    if (head.find("Transfer-Encoding: chunked") != std::string::npos) return head + read_until("0\r\n\r\n");
    const size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    return head + read_bytes(std::strtoull(head.c_str() + at + 16, nullptr, 10));
  }
  std::string ask(std::string_view request) {
    send(request);
    return read_reply();
  }
  /// Bytes of one read, as the kernel has them.
  std::string read_some() {
    if (kept_.empty()) receive();
    return take(kept_.size());
  }
  /// The server ended the connection with a reset, or was reset before.
  [[nodiscard]] bool was_reset() const noexcept { return was_reset_; }

 private:
  bool receive() {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(kPatience.count())) != 1) throw std::runtime_error("the server is silent");
    char bytes[65536];
    const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
    was_reset_ = count < 0;
    if (count <= 0) return false;
    kept_.append(bytes, static_cast<size_t>(count));
    return true;
  }
  std::string take(size_t count) {
    std::string out = kept_.substr(0, count);
    kept_.erase(0, count);
    return out;
  }

  int fd_;
  std::string kept_;
  bool was_reset_ = false;
};

}  // namespace headrace::server
