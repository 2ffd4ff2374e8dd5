// POST /v1/completions
#include "openai/completion_request.h"
#include "server/endpoints/endpoints.h"
#include "server/generation.h"

namespace headrace::server {

void completions(Exchange exchange, ServerContext& server) {
  const openai::AnswerHead head = answer_head("cmpl-", exchange, server);
  answer_generation(std::move(exchange), server, "/v1/completions", [&](const openai::Json& body) {
    const Model& model = server.model();
    const openai::CompletionRequest completion =
        openai::read_completion_request(body, model.default_params(), server.options.limits);
    if (!completion.common.model.empty()) server.check_model_name(completion.common.model);
    return openai::plan_answer(head, completion, model);
  });
}

}  // namespace headrace::server
