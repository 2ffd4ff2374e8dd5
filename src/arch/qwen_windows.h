#pragma once

#include <cstdint>
#include <vector>

#include "files/model_files.h"

namespace headrace {

/// Windows of a Qwen2 or Qwen3 model: none unless config.json has "use_sliding_window"; then the layers from
/// "max_window_layers" on, or as "layer_types" says. GGUF files have none.
[[nodiscard]] std::vector<int32_t> read_qwen_windows(const ModelFiles& files);

}  // namespace headrace
