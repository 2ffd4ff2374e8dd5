#pragma once

#include <string>
#include <vector>

#include "engine/golden_outcome.h"

namespace headrace {

/// Decodes the blocks of each type listed in `folder`/quant.json (TYPE.safetensors: `blocks` uint8 [rows, bytes],
/// `dequantized` float32 [rows, elements]) and compares bit for bit; one outcome a type, in the order of the list.
/// Throws LoadError where quant.json cannot be read.
[[nodiscard]] std::vector<GoldenOutcome> run_golden_quant(const std::string& folder);

}  // namespace headrace
