#include "server/server.h"

#include <thread>

#include "server/error_reply.h"

namespace headrace::server {
namespace {

HttpReply fault_reply(int status, std::string message) {
  const bool is_ours = status >= 500;
  return error_reply(StatusError({.status = status,
                                  .type = is_ours ? "server_error" : "invalid_request_error",
                                  .code = is_ours ? "overloaded" : "bad_request"},
                                 std::move(message)));
}

HttpOptions http_options(const ServeOptions& options) {
  HttpOptions http = options.http;
  http.fault_reply = fault_reply;
  return http;
}

HttpHandler handler_of(Router& router) {
  return [&router](HttpRequest&& request, std::shared_ptr<Responder> responder) {
    router.handle(std::move(request), std::move(responder));
  };
}

}  // namespace

Server::Server(ServeOptions options)
    : options_(std::move(options)),
      context_(options_, {.post = [this](std::function<void()> job) { http_->post(std::move(job)); },
                          .connections =
                              [this] {
                                return ConnectionFigures{.connections = http_->connections(),
                                                         .open_requests = open_requests()};
                              }}),
      router_(context_),
      grpc_router_(context_, grpc_routes()),
      http_(std::make_unique<HttpServer>(http_options(options_), handler_of(router_))) {
  if (!options_.grpc_port) return;
  HttpOptions grpc = options_.http;
  grpc.port = *options_.grpc_port;
  grpc_ = std::make_unique<GrpcServer>(grpc, handler_of(grpc_router_));
}

Server::~Server() {
  // Clients go, so their requests are cancelled, and nobody uses the model any more.
  grpc_.reset();
  http_->join();
  context_.readers.stop();
  context_.state.drop_model();  // the engine's thread ends: nothing is relayed any more
}

int64_t Server::open_requests() const noexcept {
  return http_->open_requests() + (grpc_ ? grpc_->open_calls() : int64_t{0});
}

bool Server::drain(const std::function<bool()>& hurry) {
  using Clock = std::chrono::steady_clock;
  context_.state.begin_drain();
  http_->begin_drain();
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(options_.drain_timeout_seconds));
  while (open_requests() > 0) {
    if (Clock::now() >= end || hurry()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace headrace::server
