#pragma once

#include <cstdint>
#include <memory>

#include "server/http_server.h"

namespace headrace::server {

/// gRPC, on threads of its own. A call is given to the handler as the request that it is over HTTP: POST to the
/// method's full name, metadata as headers, the message as body, the call's deadline. Of the answer, each piece that is
/// written is a message, as is the body that is sent with 200; any other status becomes the gRPC status that means the
/// same, and send() may end an answer in pieces.
class GrpcServer {
 public:
  /// Binds and listens: host, port, TLS files and limits are taken from `options`. Throws Error that names address and
  /// port, or the TLS file; in a build without gRPC, kUnsupported.
  GrpcServer(const HttpOptions& options, HttpHandler handler);
  /// Cancels what is open; handler and on_gone callbacks are called no more.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  [[nodiscard]] uint16_t port() const noexcept;
  /// Calls whose answers are not complete.
  [[nodiscard]] int64_t open_calls() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::server
