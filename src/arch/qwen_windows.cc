#include "arch/qwen_windows.h"

#include "arch/dense_decoder.h"

namespace headrace {

std::vector<int32_t> read_qwen_windows(const ModelFiles& files) {
  const Metadata& md = files.metadata();
  if (files.format() == ModelFormat::kGguf || !md.get_bool("use_sliding_window").value_or(false)) return {};
  constexpr int64_t kDefaultWindowLayers = 28;  // of the published configuration class
  const int64_t first = md.get_int("max_window_layers", 0, 1 << 20).value_or(kDefaultWindowLayers);
  return read_hf_windows(files, static_cast<int32_t>(first));
}

}  // namespace headrace
