#pragma once

#include <optional>
#include <string>
#include <vector>

#include "files/model_files.h"
#include "headrace/sampling_params.h"
#include "text/tokenizer.h"

namespace headrace {

/// The tokenizer of a model's files. Throws LoadError, also where there is none.
[[nodiscard]] Tokenizer tokenizer_of(const ModelFiles& files);

/// The tokens that end an answer, ascending: those of the tokenizer, of config.json and of generation_config.json.
[[nodiscard]] std::vector<TokenId> end_tokens(const ModelFiles& files, const Tokenizer& tokenizer);

/// The sampling that the model's authors advise: temperature, top_k, top_p, min_p and repetition_penalty of
/// generation_config.json, greedy where it says do_sample = false or nothing about the temperature.
[[nodiscard]] SamplingParams default_sampling(const ModelFiles& files);

}  // namespace headrace
