// GET /livez, /readyz, /health, /ping: whether the process answers, and whether requests are answered. Neither depends
// on load: a busy server is healthy.
#include <cmath>

#include "openai/fields.h"
#include "server/endpoints/endpoints.h"

namespace headrace::server {

HttpReply live(const Exchange&, ServerContext&) { return {.body = R"({"status":"ok"})"}; }

HttpReply ready(const Exchange&, ServerContext& server) {
  const Phase phase = server.state.phase();
  if (phase == Phase::kReady) return {.body = R"({"status":"ok"})"};
  openai::Json body;
  body["status"] = "unavailable";
  body["phase"] = phase_name(phase);
  if (phase == Phase::kLoading) body["percent"] = std::floor(100 * server.state.load_progress());
  return {.status = 503, .body = openai::to_text(body), .headers = {{"Retry-After", "5"}}};
}

}  // namespace headrace::server
