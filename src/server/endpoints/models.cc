// GET /v1/models, /v1/models/ID: the names that the model is served by.
#include <fmt/format.h>

#include "openai/fields.h"
#include "server/endpoints/endpoints.h"
#include "server/error_reply.h"

namespace headrace::server {
namespace {

openai::Json model_json(const std::string& id, const ServerContext& server) {
  const auto created = std::chrono::duration_cast<std::chrono::seconds>(server.started.time_since_epoch()).count();
  return {{"id", id},
          {"object", "model"},
          {"created", created},
          {"owned_by", "headrace"},
          {"root", server.model().name()},
          {"parent", nullptr},
          {"max_model_len", server.model().max_model_len()}};
}

}  // namespace

HttpReply list_models(const Exchange&, ServerContext& server) {
  openai::Json data = openai::Json::array();
  for (const std::string& name : server.model_names()) data.push_back(model_json(name, server));
  return {.body = openai::to_text({{"object", "list"}, {"data", std::move(data)}})};
}

HttpReply show_model(const Exchange& exchange, ServerContext& server) {
  const std::string id = exchange.request.path.substr(std::string_view("/v1/models/").size());
  server.check_model_name(id);
  return {.body = openai::to_text(model_json(id, server))};
}

}  // namespace headrace::server
