#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "server/http_server.h"
#include "server/router.h"
#include "server/server_context.h"

namespace headrace::server {

/// The server: listens from its construction on, and answers once it is given a model.
class Server {
 public:
  /// Throws Error: address in use, keys or TLS files that cannot be read.
  explicit Server(ServeOptions options);
  /// Closes what is open.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] uint16_t port() const noexcept { return http_->port(); }
  [[nodiscard]] ServerContext& context() noexcept { return context_; }

  /// Takes no more requests, and waits until those that are open have been answered, for at most the drain timeout or
  /// until `hurry` says so. True: all were answered.
  bool drain(const std::function<bool()>& hurry);

 private:
  ServeOptions options_;
  ServerContext context_;
  Router router_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace headrace::server
