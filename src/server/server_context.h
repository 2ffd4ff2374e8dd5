#pragma once

#include <string>

#include "server/event_relay.h"
#include "server/key_ring.h"
#include "server/metrics.h"
#include "server/request_log.h"
#include "server/serve_options.h"
#include "server/server_state.h"
#include "server/trace_exporter.h"

namespace headrace::server {

/// What endpoints share. Lives as long as the server.
struct ServerContext {
  const ServeOptions& options;
  ServerState state;
  KeyRing keys;
  Metrics metrics;
  RequestLog log;
  std::unique_ptr<TraceExporter> traces;  ///< nullptr: none are sent
  EventRelay relay;
  std::string fingerprint;  ///< of build and model, in every answer
  std::chrono::system_clock::time_point started;

  /// The model, where the route needs one: it is there.
  [[nodiscard]] Model& model() const { return *state.model(); }
  /// The name that answers show.
  [[nodiscard]] const std::string& model_name() const;
};

}  // namespace headrace::server
