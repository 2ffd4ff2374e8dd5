#pragma once

#include "arch/arch_spec.h"
#include "files/model_files.h"

namespace headrace {

/// The rotary positions of a model whose heads rotate `rotary_dim` values, from its metadata: none, linear, llama3 and
/// yarn scaling in the old and new spellings of config.json, linear, yarn and frequency factors (rope_freqs.weight) in
/// GGUF. Throws LoadError that names the rule for those that it does not know.
[[nodiscard]] RopeSpec read_rope(const ModelFiles& files, RopeLayout layout, int32_t rotary_dim, int32_t max_positions);

}  // namespace headrace
