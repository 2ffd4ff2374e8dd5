#pragma once

#include "server/route.h"
#include "server/server_context.h"

namespace headrace::server {

// One file an endpoint; the table in routes.cc says which path leads where.

void chat_completions(Exchange exchange, ServerContext& server);  ///< POST /v1/chat/completions
void completions(Exchange exchange, ServerContext& server);       ///< POST /v1/completions

[[nodiscard]] HttpReply list_models(const Exchange& exchange, ServerContext& server);   ///< GET /v1/models
[[nodiscard]] HttpReply show_model(const Exchange& exchange, ServerContext& server);    ///< GET /v1/models/ID
[[nodiscard]] HttpReply show_cluster(const Exchange& exchange, ServerContext& server);  ///< GET /v1/cluster
[[nodiscard]] HttpReply tokenize(const Exchange& exchange, ServerContext& server);      ///< POST /tokenize
[[nodiscard]] HttpReply detokenize(const Exchange& exchange, ServerContext& server);    ///< POST /detokenize

[[nodiscard]] HttpReply live(const Exchange& exchange, ServerContext& server);     ///< GET /livez, /ping
[[nodiscard]] HttpReply ready(const Exchange& exchange, ServerContext& server);    ///< GET /readyz, /health
[[nodiscard]] HttpReply metrics(const Exchange& exchange, ServerContext& server);  ///< GET /metrics
[[nodiscard]] HttpReply page(const Exchange& exchange, ServerContext& server);     ///< GET /, /page/NAME
[[nodiscard]] HttpReply version(const Exchange& exchange, ServerContext& server);  ///< GET /version

}  // namespace headrace::server
