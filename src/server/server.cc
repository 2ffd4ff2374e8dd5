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

}  // namespace

Server::Server(ServeOptions options)
    : options_(std::move(options)),
      context_(options_, {.post = [this](std::function<void()> job) { http_->post(std::move(job)); },
                          .connections =
                              [this] {
                                return ConnectionFigures{.connections = http_->connections(),
                                                         .open_requests = http_->open_requests()};
                              }}),
      router_(context_),
      http_(std::make_unique<HttpServer>(http_options(options_),
                                         [this](HttpRequest&& request, std::shared_ptr<Responder> responder) {
                                           router_.handle(std::move(request), std::move(responder));
                                         })) {}

Server::~Server() {
  http_->join();  // clients go, so their requests are cancelled; nobody uses the model any more
  context_.readers.stop();
  context_.state.drop_model();  // the engine's thread ends: nothing is relayed any more
}

bool Server::drain(const std::function<bool()>& hurry) {
  using Clock = std::chrono::steady_clock;
  context_.state.begin_drain();
  http_->begin_drain();
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(options_.drain_timeout_seconds));
  while (http_->open_requests() > 0) {
    if (Clock::now() >= end || hurry()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace headrace::server
