#pragma once

#include <functional>
#include <string>

#include "openai/serve_request.h"
#include "server/exchange.h"
#include "server/server_context.h"

namespace headrace::server {

class GenerationReply;

/// Answers a request by a reply that `make` makes. Everything is checked in there; what it throws is the answer.
void begin_generation(Exchange exchange, ServerContext& server, std::string endpoint,
                      const std::function<std::shared_ptr<GenerationReply>(Exchange& exchange)>& make);

/// Reads a body. Throws Error for what cannot be served.
using PlanMaker = std::function<openai::AnswerPlan(const openai::Json& body)>;

/// Answers a body that asks for generated text, whole or streamed. Everything is checked before anything is sent: as
/// long as no token is there, errors have a status of their own; then they are a last event of the stream, which ends
/// without "[DONE]". What is computed is given up when the client goes, or does not read what it is sent.
void answer_generation(Exchange exchange, ServerContext& server, std::string endpoint, const PlanMaker& make_plan);

/// What the answers to this request begin with; `prefix`: "chatcmpl-".
[[nodiscard]] openai::AnswerHead answer_head(std::string_view prefix, const Exchange& exchange,
                                             const ServerContext& server);

/// The salt of a request's cached prefixes: that of the caller and the one it asks for (`cache_salt`), joined so that
/// no choice of the latter gives the salt of another caller. Empty where both are.
[[nodiscard]] std::string joined_salt(std::string_view caller, std::string_view request);

}  // namespace headrace::server
