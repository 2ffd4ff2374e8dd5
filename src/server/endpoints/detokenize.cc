// POST /detokenize {"tokens": [...]}: the text, under vLLM's name and under llama.cpp's.
#include "openai/fields.h"
#include "server/endpoints/endpoints.h"

namespace headrace::server {

HttpReply detokenize(const Exchange& exchange, ServerContext& server) {
  const openai::Json body = openai::parse_body(exchange.request.body);
  const openai::Fields fields(body);
  if (const auto model = fields.string("model")) server.check_model_name(*model);
  if (!fields.has("tokens")) fields.refuse("tokens", "a list of token ids");
  const std::vector<int32_t> tokens = fields.token_ids("tokens");
  const std::string text = server.model().detokenize(tokens, false);
  return {.body = openai::to_text({{"prompt", text}, {"content", text}})};
}

}  // namespace headrace::server
