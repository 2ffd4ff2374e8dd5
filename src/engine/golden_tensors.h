#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "files/safetensors.h"

namespace headrace {

/// The tensor of that name as floats (F32 or F16). Throws LoadError where it is missing or of another type.
[[nodiscard]] std::vector<float> golden_floats(const SafetensorsModel& file, const std::string& path,
                                               const std::string& name);
/// The tensor of that name as token ids (I64).
[[nodiscard]] std::vector<TokenId> golden_tokens(const SafetensorsModel& file, const std::string& path,
                                                 const std::string& name);

}  // namespace headrace
