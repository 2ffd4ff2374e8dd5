// GET /metrics
#include "server/endpoints/endpoints.h"

namespace headrace::server {

HttpReply metrics(const Exchange&, ServerContext& server) {
  return {.body = server.metrics.text(server.state, server.model_name(), server.http.connections()),
          .content_type = std::string(Metrics::kContentType)};
}

}  // namespace headrace::server
