#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/route.h"
#include "server/server_context.h"

namespace headrace::server {

/// Brings each request to its route: looks for the key, refuses what may not or cannot be served now, gives every
/// answer its x-request-id. What is not in the table of routes is refused, for want of a key first.
class Router {
 public:
  explicit Router(ServerContext& server, std::span<const Route> routes = all_routes())
      : server_(server), routes_(routes) {}
  /// Answers, now or later. Any thread; does not throw.
  void handle(HttpRequest&& request, std::shared_ptr<Responder> responder) noexcept;

 private:
  class Trail;
  struct FoundRoute {
    const Route* route = nullptr;  // for path and method
    std::string other_methods;     // that the path takes, where there is no route
  };

  /// Finds the route and who asks. Throws StatusError for what may not or cannot be served now.
  const Route& admit(Exchange& exchange);
  /// Throws StatusError 429 `quota`.
  CallerLimiter::Ticket take_place(const Caller& caller);
  /// Throws StatusError 429 `queue_full`.
  void check_queue();
  /// Answers by the route's endpoint. Throws what that throws.
  void call(const Route& route, Exchange exchange);

  [[nodiscard]] FoundRoute find_route(const HttpRequest& request) const;

  ServerContext& server_;
  std::span<const Route> routes_;
};

/// Whether `pattern` of a route fits a path; "/v1/models/*" fits "/v1/models/a/b" and not "/v1/models/".
[[nodiscard]] bool path_fits(std::string_view pattern, std::string_view path) noexcept;

}  // namespace headrace::server
