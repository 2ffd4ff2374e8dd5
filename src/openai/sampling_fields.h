#pragma once

#include "headrace/sampling_params.h"
#include "openai/fields.h"

namespace headrace::openai {

/// Bounds that a server sets to what one request may ask for.
struct RequestLimits {
  int32_t max_choices = 128;     ///< n and best_of
  int32_t max_stops = 64;        ///< stop texts and stop_token_ids
  size_t max_stop_bytes = 4096;  ///< of one stop text
  int32_t max_logprobs = 20;     ///< alternatives of a token
  int32_t max_logit_biases = 1024;
};

/// The sampling fields that chat and text completions have in common, on top of `defaults` (those of the model):
/// OpenAI's and vLLM's names, and those of SGLang and llama.cpp that mean the same. `logprobs`, `max_tokens` and
/// `response_format`, which differ between the two, are left to the caller. Throws RequestError.
[[nodiscard]] SamplingParams read_sampling(const Fields& body, const SamplingParams& defaults,
                                           const RequestLimits& limits);

/// `response_format` (chat), `structured_outputs`, and the older names `guided_*`, `regex`, `ebnf`, `grammar`,
/// `json_schema`. Throws RequestError where more than one is given.
[[nodiscard]] StructuredOutput read_structured_output(const Fields& body);

/// Fields that ask for something that this engine cannot do, where their value asks for it: RequestError
/// `unsupported_parameter`.
void refuse_unsupported(const Fields& body);

}  // namespace headrace::openai
