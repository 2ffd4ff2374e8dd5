// GET /livez, /readyz, /health, /ping: whether the process answers, and whether requests are answered. Neither depends
// on load: a busy server is healthy.
#include <cmath>

#include "openai/fields.h"
#include "server/endpoints/endpoints.h"

namespace headrace::server {
namespace {

constexpr double kLongestStepSeconds = 60;  // while there is work: beyond that, the engine hangs

}  // namespace

HttpReply live(const Exchange&, ServerContext&) { return {.body = R"({"status":"ok"})"}; }

HttpReply ready(const Exchange&, ServerContext& server) {
  const Phase phase = server.state.phase();
  if (phase == Phase::kReady && server.model().figures().seconds_without_step > kLongestStepSeconds) {
    return {.status = 503, .body = R"({"status":"unavailable","phase":"stalled"})", .headers = {{"Retry-After", "5"}}};
  }
  if (phase == Phase::kReady && !server.model().cluster_figures().up) {
    return {
        .status = 503, .body = R"({"status":"unavailable","phase":"worker lost"})", .headers = {{"Retry-After", "5"}}};
  }
  if (phase == Phase::kReady) return {.body = R"({"status":"ok"})"};
  openai::Json body;
  body["status"] = "unavailable";
  body["phase"] = phase_name(phase);
  if (phase == Phase::kLoading) body["percent"] = std::floor(100 * server.state.load_progress());
  return {.status = 503, .body = openai::to_text(body), .headers = {{"Retry-After", "5"}}};
}

}  // namespace headrace::server
