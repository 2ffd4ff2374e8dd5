#include "server/router.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cat.h"
#include "base/crypto.h"
#include "server/error_reply.h"

namespace headrace::server {
namespace {

constexpr double kRetrySeconds = 5;  // of a model that loads, or a server that drains and will be replaced

/// What a client may choose as its request's id: it comes back in a header and in log lines.
bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127 && c != '"' && c != '\\'; });
}

std::string new_request_id() { return cat("req-", random_hex(12)); }

/// Adds headers to the answer on its way, and holds the caller's place meanwhile.
class HeadedResponder final : public Responder {
 public:
  HeadedResponder(std::shared_ptr<Responder> inner, std::vector<Header> headers)
      : inner_(std::move(inner)), headers_(std::move(headers)) {}

  /// The caller's place is taken until the answer is complete, or nobody holds this any more: given back before the
  /// last of the answer goes out, so that the client's next request finds it free.
  void keep(CallerLimiter::Ticket ticket) { ticket_ = std::move(ticket); }

  void send(HttpReply reply) override {
    ticket_ = {};
    inner_->send(with_headers(std::move(reply)));
  }
  void begin(HttpReply head) override { inner_->begin(with_headers(std::move(head))); }
  bool write(std::string_view bytes) override { return inner_->write(bytes); }
  void finish() override {
    ticket_ = {};
    inner_->finish();
  }
  void abort() override { inner_->abort(); }
  void on_gone(std::function<void()> callback) override { inner_->on_gone(std::move(callback)); }
  [[nodiscard]] bool has_client() const override { return inner_->has_client(); }

 private:
  HttpReply with_headers(HttpReply reply) const {
    reply.headers.insert(reply.headers.end(), headers_.begin(), headers_.end());
    return reply;
  }

  std::shared_ptr<Responder> inner_;
  std::vector<Header> headers_;
  CallerLimiter::Ticket ticket_;
};

bool is_allowed_origin(std::string_view origin, const ServeOptions& options) {
  const auto& allowed = options.allowed_origins;
  return std::find(allowed.begin(), allowed.end(), origin) != allowed.end();
}

/// A web page elsewhere may send requests that browsers do not ask about first: they are refused before they cost
/// anything. Our own page comes from the same host.
void check_origin(const HttpRequest& request, const ServeOptions& options) {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || is_allowed_origin(origin, options)) return;
  const size_t host = origin.find("://");
  if (host != std::string_view::npos && origin.substr(host + 3) == request.header("host")) return;
  throw StatusError({.status = 403, .type = "permission_error", .code = "origin_not_allowed"},
                    fmt::format("web pages of {} may not call this server: --allowed-origins names those that may",
                                origin.substr(0, 200)));
}

std::vector<Header> common_headers(const Exchange& exchange, const ServeOptions& options) {
  std::vector<Header> headers{{"x-request-id", exchange.request_id}};
  const std::string_view origin = exchange.request.header("origin");
  if (!origin.empty() && is_allowed_origin(origin, options)) {
    headers.push_back({"Access-Control-Allow-Origin", std::string(origin)});
    headers.push_back({"Access-Control-Expose-Headers", "x-request-id, Retry-After"});
    headers.push_back({"Vary", "Origin"});
  }
  return headers;
}

bool is_preflight(const Exchange& exchange, const ServeOptions& options) {
  return exchange.request.method == "OPTIONS" && is_allowed_origin(exchange.request.header("origin"), options) &&
         !exchange.request.header("access-control-request-method").empty();
}

HttpReply preflight_reply(const Exchange&, ServerContext&) {
  return {.status = 204,
          .headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                      {"Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key, X-Request-Id"},
                      {"Access-Control-Max-Age", "600"}}};
}

void check_content_type(const HttpRequest& request) {
  if (request.method != "POST" || request.body.empty()) return;
  const std::string_view type = request.header("content-type");
  if (type.empty() || type.find("json") != std::string_view::npos) return;
  throw StatusError({.status = 415, .type = "invalid_request_error", .code = "unsupported_media_type"},
                    fmt::format("Content-Type: found {}, expected application/json", type));
}

void check_phase(const ServerState& state) {
  switch (state.phase()) {
    case Phase::kReady:
      return;
    case Phase::kLoading:
      throw unavailable("loading", kRetrySeconds,
                        fmt::format("the model is being loaded: {:.0f} %", 100 * state.load_progress()));
    case Phase::kDraining:
      throw unavailable("draining", kRetrySeconds, "the server is going away and takes no new requests");
    case Phase::kFailed:
      throw unavailable("overloaded", kRetrySeconds, "the model is not there: see the server's log");
  }
}

}  // namespace

bool path_fits(std::string_view pattern, std::string_view path) noexcept {
  if (!pattern.ends_with("/*")) return pattern == path;
  pattern.remove_suffix(1);
  return path.size() > pattern.size() && path.starts_with(pattern);
}

/// What log and a late error need of a request whose exchange an endpoint has taken along.
class Router::Trail {
 public:
  explicit Trail(const Exchange& exchange)
      : method_(exchange.request.method), path_(exchange.request.path), arrived_(exchange.request.arrived) {
    follow(exchange);
  }
  /// Id, caller and responder are those of the exchange now.
  void follow(const Exchange& exchange) {
    id_ = exchange.request_id;
    caller_ = exchange.caller.name;
    responder_ = exchange.responder;
  }
  void log(RequestLog& log, int status) const { log.plain_request(id_, caller_, method_, path_, status, seconds()); }
  void fail(RequestLog& request_log, const std::exception& error) const {
    HttpReply reply = error_reply(error);
    reply.headers.push_back({"openai-processing-ms", fmt::format("{:.0f}", 1e3 * seconds())});
    log(request_log, reply.status);
    responder_->send(std::move(reply));
  }

 private:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - arrived_).count();
  }

  std::string method_, path_, id_, caller_;
  std::chrono::steady_clock::time_point arrived_;
  std::shared_ptr<Responder> responder_;
};

void Router::handle(HttpRequest&& request, std::shared_ptr<Responder> responder) noexcept {
  Exchange exchange{.request = std::move(request), .responder = std::move(responder), .request_id = {}, .caller = {}};
  Trail trail(exchange);
  try {
    const std::string_view wanted = exchange.request.header("x-request-id");
    exchange.request_id = is_request_id(wanted) ? std::string(wanted) : new_request_id();
    const auto headed =
        std::make_shared<HeadedResponder>(std::move(exchange.responder), common_headers(exchange, server_.options));
    exchange.responder = headed;
    trail.follow(exchange);
    const Route& route = admit(exchange);
    trail.follow(exchange);
    if (route.needs_model) headed->keep(take_place(exchange.caller));
    if (exchange.request.method != "POST") return call(route, std::move(exchange));
    if (std::holds_alternative<StreamingEndpoint>(route.endpoint)) check_queue();
    server_.readers.post([this, &route, exchange = std::move(exchange)]() mutable {
      const Trail late_trail(exchange);
      try {
        call(route, std::move(exchange));
      } catch (const std::exception& error) {
        late_trail.fail(server_.log, error);
      }
    });
  } catch (const std::exception& error) {
    trail.fail(server_.log, error);
  }
}

const Route& Router::admit(Exchange& exchange) {
  const HttpRequest& request = exchange.request;
  static constexpr Route kPreflight{"OPTIONS", "/*", Access::kOpen, false, preflight_reply};
  if (is_preflight(exchange, server_.options)) return kPreflight;
  check_origin(request, server_.options);

  const std::optional<Caller> caller = server_.keys.identify(request);
  if (caller) exchange.caller = *caller;
  const auto [route, other_methods] = find_route(request);
  // Before all else: without a key nobody learns what is here.
  if (!caller && (route == nullptr || route->access != Access::kOpen)) {
    throw unauthorized(route != nullptr && route->is_page ? "Basic realm=\"the password is a key\"" : "Bearer");
  }
  if (!other_methods.empty()) throw method_not_allowed(other_methods);
  if (route == nullptr) throw not_found(fmt::format("no such path: {} {}", request.method, request.path));
  const bool may = !caller || caller->is_admin || route->access < Access::kMetrics ||
                   (route->access == Access::kMetrics && caller->reads_metrics);
  if (!may) {
    throw StatusError({.status = 403, .type = "permission_error", .code = "admin_only"},
                      fmt::format("this path is for keys marked '{}'",
                                  route->access == Access::kMetrics ? "metrics' or 'admin" : "admin"));
  }
  check_content_type(request);
  if (route->needs_model) check_phase(server_.state);
  return *route;
}

Router::FoundRoute Router::find_route(const HttpRequest& request) const {
  const std::string_view method = request.method == "HEAD" ? std::string_view("GET") : request.method;
  FoundRoute found;
  for (const Route& route : routes_) {
    if (!path_fits(route.path, request.path)) continue;
    if (route.method == method) return {.route = &route, .other_methods = {}};
    found.other_methods += fmt::format("{}{}", found.other_methods.empty() ? "" : ", ", route.method);
  }
  return found;
}

CallerLimiter::Ticket Router::take_place(const Caller& caller) {
  try {
    return server_.limiter.admit(caller.name, server_.keys.limits_of(caller));
  } catch (const StatusError&) {
    server_.metrics.requests().count(Rejection::kQuota);
    throw;
  }
}

void Router::check_queue() {
  try {
    server_.check_queue();
  } catch (const StatusError&) {
    server_.metrics.requests().count(Rejection::kQueueFull);
    throw;
  }
}

void Router::call(const Route& route, Exchange exchange) {
  if (const auto* streaming = std::get_if<StreamingEndpoint>(&route.endpoint)) {
    return (*streaming)(std::move(exchange), server_);
  }
  HttpReply reply = std::get<PlainEndpoint>(route.endpoint)(exchange, server_);
  // Probes of health come every few seconds for ever, and say nothing.
  if (route.access != Access::kOpen) Trail(exchange).log(server_.log, reply.status);
  exchange.responder->send(std::move(reply));
}

}  // namespace headrace::server
