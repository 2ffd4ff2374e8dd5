#include "server/generation.h"

#include <fmt/format.h>

#include <ctime>

#include "base/ascii_text.h"
#include "openai/fields.h"
#include "server/error_reply.h"
#include "server/generation_reply.h"
#include "server/sha256.h"

namespace headrace::server {

openai::AnswerHead answer_head(std::string_view prefix, const Exchange& exchange, const ServerContext& server) {
  return {.id = fmt::format("{}{}", prefix, exchange.request_id),
          .model = server.model_name(),
          .created = std::time(nullptr),
          .fingerprint = server.fingerprint()};
}

std::string joined_salt(std::string_view caller, std::string_view request) {
  if (caller.empty() && request.empty()) return {};
  // The length says where the one ends. Digested, because prefixes are told apart by a short hash of the salt, for
  // which equal ones can be found where the text can be chosen freely.
  return hex_text(sha256(fmt::format("{}:{}{}", caller.size(), caller, request)));
}

void answer_generation(Exchange exchange, ServerContext& server, std::string endpoint, const PlanMaker& make_plan) {
  std::shared_ptr<GenerationReply> reply;
  try {
    if (!exchange.responder->has_client()) {
      RequestWatch watch(server.metrics, server.log, server.traces.get(), exchange, {.endpoint = std::move(endpoint)});
      return watch.end(Outcome::kAborted, kClientGone);
    }
    openai::AnswerPlan plan = make_plan(openai::parse_body(exchange.request.body));
    exchange.request.body = {};  // it may be large, and is not needed any more
    reply = std::make_shared<GenerationReply>(exchange, server, endpoint, std::move(plan));
  } catch (const std::exception& error) {
    HttpReply refusal = error_reply(error);
    RequestWatch watch(server.metrics, server.log, server.traces.get(), exchange, {.endpoint = std::move(endpoint)});
    watch.end(refusal.status < 500 ? Outcome::kRejected : Outcome::kError, refusal.status);
    return exchange.responder->send(std::move(refusal));
  }
  reply->start();
}

}  // namespace headrace::server
