#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "server/exchange.h"

namespace headrace::server {

struct ServerContext;

/// Who may call a route where keys are asked for.
enum class Access {
  kOpen,     ///< anyone
  kUser,     ///< any key
  kMetrics,  ///< an admin's key, or one for metrics
  kAdmin,    ///< an admin's key
};

/// Answers at once. What it throws becomes the error body.
using PlainEndpoint = HttpReply (*)(const Exchange& exchange, ServerContext& server);
/// Answers by the exchange's responder, later perhaps. What it throws becomes the error body, if nothing was sent.
using StreamingEndpoint = void (*)(Exchange exchange, ServerContext& server);

/// One row of the table of routes.
struct Route {
  std::string_view method;
  std::string_view path;  ///< may end in "/*", which stands for one further part or more
  Access access = Access::kUser;
  bool needs_model = false;  ///< 503 `loading` until the model is there, `draining` once it goes away
  std::variant<PlainEndpoint, StreamingEndpoint> endpoint;
  bool is_page = false;  ///< for browsers, which ask their user for a key
};

/// All routes of HTTP; the only place that knows them.
[[nodiscard]] std::span<const Route> all_routes() noexcept;
/// All methods of the gRPC service, as routes: "POST" and the method's full name.
[[nodiscard]] std::span<const Route> grpc_routes() noexcept;

}  // namespace headrace::server
