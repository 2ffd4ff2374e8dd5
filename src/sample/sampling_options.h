#pragma once

#include <vector>

#include "base/options.h"
#include "headrace/sampling_params.h"

namespace headrace {

/// One row for each sampling parameter that is a number, a switch or a list of texts, with its range: the flags of
/// `headrace run`. They write into `params`, which must outlive them.
[[nodiscard]] std::vector<Option> sampling_options(SamplingParams& params);

/// Throws Error(kInvalidArgument) that names the first parameter with a token outside the vocabulary.
void check_sampling_tokens(const SamplingParams& params, int32_t vocab_size);

}  // namespace headrace
