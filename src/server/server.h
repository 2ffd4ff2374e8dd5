#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "server/grpc_server.h"
#include "server/http_server.h"
#include "server/router.h"
#include "server/server_context.h"

namespace headrace::server {

/// The server: listens from its construction on, and answers once it is given a model.
class Server {
 public:
  /// Throws Error: address in use, keys or TLS files that cannot be read, gRPC in a build without it.
  explicit Server(ServeOptions options);
  /// Closes what is open.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] uint16_t port() const noexcept { return http_->port(); }
  /// Of the gRPC service; 0: there is none.
  [[nodiscard]] uint16_t grpc_port() const noexcept { return grpc_ ? grpc_->port() : uint16_t{0}; }
  [[nodiscard]] ServerContext& context() noexcept { return context_; }

  /// Takes no more requests, and waits until those that are open have been answered, for at most the drain timeout or
  /// until `hurry` says so. True: all were answered.
  bool drain(const std::function<bool()>& hurry);

 private:
  /// By HTTP and gRPC, whose answers are not complete.
  [[nodiscard]] int64_t open_requests() const noexcept;

  ServeOptions options_;
  ServerContext context_;
  Router router_;
  Router grpc_router_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<GrpcServer> grpc_;
};

}  // namespace headrace::server
