#include "server/generation.h"

#include <fmt/format.h>

#include <ctime>

#include "base/ascii_text.h"
#include "base/crypto.h"
#include "openai/fields.h"
#include "server/error_reply.h"
#include "server/generation_reply.h"
#include "server/openai_sender.h"

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

void begin_generation(Exchange exchange, ServerContext& server, std::string endpoint,
                      const std::function<std::shared_ptr<GenerationReply>(Exchange& exchange)>& make) {
  std::shared_ptr<GenerationReply> reply;
  try {
    if (!exchange.responder->has_client()) {
      RequestWatch watch(server.metrics, server.log, server.traces.get(), exchange, {.endpoint = std::move(endpoint)});
      return watch.end(Outcome::kAborted, kClientGone);
    }
    reply = make(exchange);
  } catch (const std::exception& error) {
    HttpReply refusal = error_reply(error);
    RequestWatch watch(server.metrics, server.log, server.traces.get(), exchange, {.endpoint = std::move(endpoint)});
    watch.end(refusal.status < 500 ? Outcome::kRejected : Outcome::kError, refusal.status);
    return exchange.responder->send(std::move(refusal));
  }
  reply->start();
}

void answer_generation(Exchange exchange, ServerContext& server, std::string endpoint, const PlanMaker& make_plan) {
  begin_generation(std::move(exchange), server, endpoint, [&](Exchange& asked) {
    openai::AnswerPlan plan = make_plan(openai::parse_body(asked.request.body));
    asked.request.body = {};  // it may be large, and is not needed any more
    RequestShape shape{.endpoint = endpoint,
                       .choices = plan.common.sampling.n,
                       .max_tokens = plan.common.sampling.max_tokens,
                       .stream = plan.common.stream,
                       .model = plan.common.model};
    std::vector<Request> requests = std::move(plan.requests);
    auto sender = std::make_unique<OpenAiSender>(asked.responder, asked.request.arrived, std::move(plan));
    return std::make_shared<GenerationReply>(asked, server, std::move(shape), std::move(requests), std::move(sender));
  });
}

}  // namespace headrace::server
