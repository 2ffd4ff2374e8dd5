// GET /version
#include "openai/fields.h"
#include "server/endpoints/endpoints.h"

namespace headrace::server {

HttpReply version(const Exchange&, ServerContext& server) {
  openai::Json body;
  body["version"] = server.options.version;
  body["system_fingerprint"] = server.fingerprint();
  return {.body = openai::to_text(body)};
}

}  // namespace headrace::server
