#include "openai/completion_request.h"

#include "base/cat.h"

namespace headrace::openai {
namespace {

constexpr int32_t kDefaultMaxTokens = 16;  // OpenAI's and vLLM's

std::vector<std::variant<std::string, std::vector<int32_t>>> read_prompts(const Fields& body) {
  constexpr std::string_view kExpected = "a text, a list of texts, token ids, or a list of lists of token ids";
  const Json* prompt = body.find("prompt");
  if (prompt == nullptr) body.refuse("prompt", kExpected);
  if (prompt->is_string()) return {prompt->get<std::string>()};
  if (!prompt->is_array() || prompt->empty()) body.refuse("prompt", kExpected);
  if (prompt->front().is_number()) return {token_ids_of(*prompt, "prompt")};
  std::vector<std::variant<std::string, std::vector<int32_t>>> prompts;
  for (size_t i = 0; i < prompt->size(); ++i) {
    const Json& one = (*prompt)[i];
    if (one.is_string()) {
      prompts.emplace_back(one.get<std::string>());
    } else if (one.is_array()) {
      prompts.emplace_back(token_ids_of(one, cat("prompt[", i, "]")));
    } else {
      body.refuse("prompt", kExpected);
    }
  }
  return prompts;
}

}  // namespace

CompletionRequest read_completion_request(const Json& json, const SamplingParams& defaults,
                                          const RequestLimits& limits) {
  const Fields body(json);
  CompletionRequest request{.common = read_common(body, defaults, limits, kDefaultMaxTokens),
                            .prompts = read_prompts(body)};
  SamplingParams& sampling = request.common.sampling;
  request.echo = body.boolean("echo").value_or(false);
  request.add_special_tokens = body.boolean("add_special_tokens").value_or(true);
  if (const auto n = body.integer("logprobs", 0, limits.max_logprobs)) sampling.logprobs = static_cast<int32_t>(*n);
  if (const auto n = body.integer("n_probs", 0, limits.max_logprobs); n && *n > 0) {
    sampling.logprobs = static_cast<int32_t>(*n);
  }
  if (request.echo && sampling.logprobs) sampling.prompt_logprobs = sampling.logprobs;
  if (const auto n = body.integer("best_of", 1, limits.max_choices)) {
    if (*n < sampling.n) body.refuse("best_of", cat("at least n, which is ", sampling.n));
    if (*n > sampling.n && request.common.stream) body.refuse("best_of", "n, as the answer is streamed");
    sampling.best_of = static_cast<int32_t>(*n);
  }
  return request;
}

}  // namespace headrace::openai
