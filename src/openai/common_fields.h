#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/sampling_params.h"
#include "openai/fields.h"
#include "openai/sampling_fields.h"

namespace headrace::openai {

/// What chat and text completions ask for alike.
struct CommonFields {
  std::string model;  ///< empty: not named
  SamplingParams sampling;
  bool score_only = false;  ///< no answer is wanted: max_tokens is 0
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
  bool timings = false;                ///< llama.cpp's, at the end of the answer
  bool timings_per_token = false;      ///< and with each chunk of a stream
  std::vector<std::string> bad_words;  ///< to be encoded by the model's tokenizer
  int32_t priority = 0;
  std::string cache_salt;
  std::string request_id;
  std::optional<int32_t> truncate_prompt_tokens;  ///< keep the last ones only
};

/// `default_max_tokens`: where the request names none; 0: as many as the context allows.
[[nodiscard]] CommonFields read_common(const Fields& body, const SamplingParams& defaults, const RequestLimits& limits,
                                       int32_t default_max_tokens);

}  // namespace headrace::openai
