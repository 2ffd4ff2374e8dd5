// POST /v1/chat/completions
#include "openai/chat_request.h"
#include "openai/system_messages.h"
#include "server/endpoints/endpoints.h"
#include "server/generation.h"

namespace headrace::server {
namespace {

/// A template runs in the server: whoever may bring one is trusted.
void take_template(const openai::Json& body, const ServeOptions& options, Conversation& conversation) {
  std::optional<std::string> source = openai::Fields(body).string("chat_template");
  if (!source) return;
  if (!options.trust_request_chat_template) {
    throw openai::RequestError("unsupported_parameter", "chat_template",
                               "chat_template: this server takes none from requests "
                               "(--trust-request-chat-template)");
  }
  conversation.chat_template = std::move(*source);
}

openai::AnswerPlan plan_chat(const openai::Json& body, const openai::AnswerHead& head, const ServerContext& server) {
  const Model& model = server.model();
  openai::ChatRequest chat = openai::read_chat_request(body, model.default_params(), server.options.limits);
  if (!chat.common.model.empty()) server.check_model_name(chat.common.model);
  take_template(body, server.options, chat.conversation);
  const std::string& own = chat.conversation.chat_template;
  const openai::MessageFormat format = openai::find_message_format(
      own.empty() ? model.chat_template() : own, server.options.tool_call_parser, server.options.reasoning_parser);
  return openai::with_merged_system_messages(chat.conversation, server.options.merge_system_messages,
                                             [&] { return openai::plan_answer(head, chat, model, format); });
}

}  // namespace

void chat_completions(Exchange exchange, ServerContext& server) {
  const openai::AnswerHead head = answer_head("chatcmpl-", exchange, server);
  answer_generation(std::move(exchange), server, "/v1/chat/completions",
                    [&](const openai::Json& body) { return plan_chat(body, head, server); });
}

}  // namespace headrace::server
