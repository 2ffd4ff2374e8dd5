// POST /tokenize: tokens of a text ("prompt", or llama.cpp's "content") or of a conversation ("messages").
#include "openai/chat_request.h"
#include "openai/fields.h"
#include "server/endpoints/endpoints.h"

namespace headrace::server {
namespace {

std::vector<int32_t> tokens_of(const openai::Json& body, const openai::Fields& fields, ServerContext& server) {
  const Model& model = server.model();
  if (fields.has("messages")) {
    const openai::ChatRequest chat = openai::read_chat_request(body, model.default_params(), server.options.limits);
    return model.tokenize(chat.conversation);
  }
  const std::string_view name = fields.has("prompt") ? "prompt" : "content";
  const std::optional<std::string> text = fields.string(name);
  if (!text) fields.refuse("prompt", "a text, or 'messages'");
  // llama.cpp calls it add_special and leaves it out by default.
  const bool by_default = name == "prompt";
  const bool add_special =
      fields.boolean("add_special_tokens").value_or(fields.boolean("add_special").value_or(by_default));
  return model.tokenize(*text, add_special, true);
}

}  // namespace

HttpReply tokenize(const Exchange& exchange, ServerContext& server) {
  const openai::Json body = openai::parse_body(exchange.request.body);
  const openai::Fields fields(body);
  if (const auto model = fields.string("model")) server.check_model_name(*model);
  const std::vector<int32_t> tokens = tokens_of(body, fields, server);
  openai::Json answer{{"tokens", tokens}, {"count", tokens.size()}, {"max_model_len", server.model().max_model_len()}};
  if (fields.boolean("return_token_strs").value_or(false)) {
    openai::Json texts = openai::Json::array();
    for (const int32_t token : tokens) texts.push_back(server.model().token_bytes(token));
    answer["token_strs"] = std::move(texts);
  }
  return {.body = openai::to_text(answer)};
}

}  // namespace headrace::server
