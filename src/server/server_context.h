#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/caller_limiter.h"
#include "server/event_relay.h"
#include "server/key_ring.h"
#include "server/metrics.h"
#include "server/request_log.h"
#include "server/serve_options.h"
#include "server/server_state.h"
#include "server/trace_exporter.h"
#include "server/work_pool.h"

namespace headrace::server {

/// What the server's parts ask of its HTTP side.
struct HttpSide {
  std::function<void(std::function<void()>)> post;  ///< runs a job on an I/O thread
  std::function<ConnectionFigures()> connections;
};

/// What endpoints share. Lives as long as the server. Threading: every function from any thread.
struct ServerContext {
  /// Loads the keys. Throws Error.
  ServerContext(const ServeOptions& serve_options, HttpSide http_side);

  /// The model, where the route needs one: it is there.
  [[nodiscard]] Model& model() const { return *state.model(); }
  /// The names that the model is served by; the first one is in all answers. Empty until one is known.
  [[nodiscard]] std::vector<std::string> model_names() const;
  [[nodiscard]] std::string model_name() const;
  /// Throws StatusError 404 `model_not_found`, with the names that there are, for another one.
  void check_model_name(std::string_view name) const;
  /// Throws StatusError 429 `queue_full` where one more request would surely be refused, before its body costs
  /// anything: those whose bodies are being read count as waiting.
  void check_queue() const;
  /// Of build, model and numerics, in every answer: equal ones give equal answers.
  [[nodiscard]] std::string fingerprint() const;

  const ServeOptions& options;
  const HttpSide http;
  const std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
  ServerState state;
  KeyRing keys;
  CallerLimiter limiter;
  Metrics metrics;
  RequestLog log;
  std::unique_ptr<TraceExporter> traces;  ///< nullptr: none are sent
  EventRelay relay;
  WorkPool readers;  ///< of requests' bodies
};

}  // namespace headrace::server
