#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "headrace/sampling_params.h"
#include "sample/logit_processor.h"

namespace headrace {

[[nodiscard]] bool has_penalties(const SamplingParams& params) noexcept;

/// Repetition, frequency and presence penalty, in this order, each rounded to float: tokens of prompt and answer have
/// positive logits divided and others multiplied by the first; those of the answer lose the second for each time it
/// holds them and the third once.
[[nodiscard]] std::unique_ptr<LogitProcessor> make_penalties(const SamplingParams& params,
                                                             std::span<const TokenId> prompt);

}  // namespace headrace
