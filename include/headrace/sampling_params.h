#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headrace {

/// How the next token is chosen and when a generation ends. Names and meanings are those of the OpenAI and vLLM APIs.
struct SamplingParams {
  float temperature = 1.0f;           ///< 0: greedy
  int32_t top_k = 0;                  ///< keep the k best; 0: all
  float top_p = 1.0f;                 ///< keep the best whose probabilities reach p
  float min_p = 0.0f;                 ///< drop those below min_p times the best one's probability
  float repetition_penalty = 1.0f;    ///< over prompt and answer; 1: none (arXiv:1909.05858)
  float presence_penalty = 0.0f;      ///< once for each token that the answer holds
  float frequency_penalty = 0.0f;     ///< for each time it holds it
  std::optional<uint64_t> seed = {};  ///< absent: chosen at random
  int32_t max_tokens = 0;             ///< 0: as many as the context allows
  bool ignore_eos = false;
  std::vector<std::string> stop = {};  ///< texts that end the answer; not part of it
};

/// Throws Error(kInvalidArgument) that names the first parameter out of its range, with the range.
void check_sampling_params(const SamplingParams& params);

}  // namespace headrace
