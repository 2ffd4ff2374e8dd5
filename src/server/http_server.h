#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/http_message.h"
#include "server/responder.h"

namespace headrace::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;  ///< 0: any that is free
  int threads = 2;
  int64_t max_body_bytes = int64_t{32} << 20;
  int64_t max_header_bytes = int64_t{64} << 10;
  int32_t max_connections = 4096;                    ///< further ones get 503
  std::chrono::milliseconds header_timeout{15'000};  ///< from the first byte of a request to the end of its head
  std::chrono::milliseconds body_timeout{60'000};    ///< without a byte of the body
  std::chrono::milliseconds idle_timeout{75'000};    ///< between two requests of a connection
  int64_t max_unsent_bytes = int64_t{1} << 20;  ///< of an answer in pieces that the client does not read: it is cut off
  std::chrono::milliseconds write_timeout{30'000};  ///< without a byte taken by the client: it is cut off
  std::string tls_certificate = {};                 ///< file with the chain, PEM; empty: no TLS
  std::string tls_key = {};                         ///< file with the private key, PEM
  /// The answer to what is no request that the handler could see: malformed (400), head or body too large (431, 413),
  /// too slow (408), an expectation or a coding that is not understood (417, 501), too many connections (503); and to
  /// what the handler throws (500). Any I/O thread. Without it, the message as plain text.
  std::function<HttpReply(int status, std::string message)> fault_reply = {};
};

/// Takes a request; the answer may come later, from any thread. Runs on an I/O thread and must not wait. What it throws
/// is answered with 500.
using HttpHandler = std::function<void(HttpRequest&&, std::shared_ptr<Responder>)>;

/// HTTP/1.1 with keep-alive, answers in pieces (chunked) and TLS, over Boost.Beast, on threads of its own.
class HttpServer {
 public:
  /// Binds and listens. Throws Error that names address and port, or the TLS file.
  HttpServer(HttpOptions options, HttpHandler handler);
  /// join(), then runs the jobs that are left.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] uint16_t port() const noexcept;
  /// Runs `job` on an I/O thread soon. Any thread.
  void post(std::function<void()> job);
  [[nodiscard]] int64_t connections() const noexcept;
  /// Requests whose answers are not complete.
  [[nodiscard]] int64_t open_requests() const noexcept;
  /// Answers say "Connection: close" from now on, and idle connections are closed; new ones are still taken, so that
  /// they can be told that the server is going away.
  void begin_drain();
  /// Closes all connections, whatever they do; on_gone callbacks are called, soon. Jobs still run.
  void stop();
  /// stop(), and waits until the I/O threads have ended: the handler and on_gone callbacks are called no more.
  void join();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::server
