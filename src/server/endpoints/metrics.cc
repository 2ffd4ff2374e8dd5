// GET /metrics
#include "server/endpoints/endpoints.h"

namespace headrace::server {

HttpReply metrics(const Exchange&, ServerContext& server) {
  return {.body = server.metrics.text(server.state, server.model_name()),
          .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace headrace::server
