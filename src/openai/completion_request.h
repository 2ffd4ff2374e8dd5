#pragma once

#include <string>
#include <variant>
#include <vector>

#include "openai/common_fields.h"

namespace headrace::openai {

/// The body of POST /v1/completions.
struct CompletionRequest {
  CommonFields common;
  std::vector<std::variant<std::string, std::vector<int32_t>>> prompts;  ///< texts or token ids, at least one
  bool echo = false;                                                     ///< the prompt stands before the answer
  bool add_special_tokens = true;
};

/// Reads a body; `prompt` is a text, a list of texts, token ids, or a list of lists of token ids. Throws RequestError.
[[nodiscard]] CompletionRequest read_completion_request(const Json& body, const SamplingParams& defaults,
                                                        const RequestLimits& limits);

}  // namespace headrace::openai
