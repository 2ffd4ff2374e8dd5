#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headrace/structured_output.h"

namespace headrace {

/// How the next token is chosen and when a generation ends. Names and meanings are those of the OpenAI and vLLM APIs.
struct SamplingParams {
  float temperature = 1.0f;           ///< 0: greedy
  int32_t top_k = 0;                  ///< keep the k best; 0 or -1: all
  float top_p = 1.0f;                 ///< keep the best whose probabilities reach p
  float min_p = 0.0f;                 ///< drop those below min_p times the best one's probability
  float typical_p = 1.0f;             ///< keep the most typical whose probabilities reach p (arXiv:2202.00666)
  float repetition_penalty = 1.0f;    ///< over prompt and answer; 1: none (arXiv:1909.05858)
  float presence_penalty = 0.0f;      ///< once for each token that the answer holds
  float frequency_penalty = 0.0f;     ///< for each time it holds it
  std::optional<uint64_t> seed = {};  ///< absent: chosen at random

  std::map<int32_t, float> logit_bias = {};     ///< added to the logits of these tokens, -100 to 100
  std::vector<int32_t> allowed_token_ids = {};  ///< not empty: no others
  /// Sequences of tokens that the answer may not hold; one of a single token bans that token. Words are encoded by
  /// whoever fills this in (with and without a blank before them, usually).
  std::vector<std::vector<int32_t>> bad_words = {};
  StructuredOutput structured_output = {};
  StructuredOutputStart structured_output_start = {};

  int32_t n = 1;        ///< answers to one prompt
  int32_t best_of = 0;  ///< how many are made, of which the n most probable are given; 0: n

  int32_t max_tokens = 0;  ///< 0: as many as the context allows
  int32_t min_tokens = 0;  ///< neither end tokens nor stop texts count before as many
  bool ignore_eos = false;
  std::vector<std::string> stop = {};        ///< texts that end the answer
  std::vector<int32_t> stop_token_ids = {};  ///< tokens that end it, also with ignore_eos
  bool include_stop_str_in_output = false;   ///< what ended the answer, a stop text or token, is part of it

  bool skip_special_tokens = true;                 ///< special tokens add no text
  std::vector<int32_t> shown_special_tokens = {};  ///< but these, which add their names
  std::optional<int32_t> logprobs = {};            ///< for each token of the answer its own and the N best, 0 to 20
  std::optional<int32_t> prompt_logprobs = {};     ///< the same for each token of the prompt but the first
};

/// Throws Error(kInvalidArgument) that names the first parameter out of its range, with the range.
void check_sampling_params(const SamplingParams& params);

}  // namespace headrace
