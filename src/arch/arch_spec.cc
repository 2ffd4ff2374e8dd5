#include "arch/arch_spec.h"

#include <algorithm>

namespace headrace {

ShardRange shard_range(const TensorSpec& tensor, int32_t rank, int32_t ranks) noexcept {
  const int64_t size = tensor.shard == Shard::kColumns ? tensor.shape.back() : tensor.shape.front();
  if (tensor.shard == Shard::kCopy) return {0, size};
  const int64_t units = (size + tensor.shard_unit - 1) / tensor.shard_unit;
  const auto edge = [&](int64_t r) { return std::min(units * r / ranks * tensor.shard_unit, size); };
  return {edge(rank), edge(rank + 1)};
}

const TensorSpec* ArchSpec::find_tensor(std::string_view tensor_name) const noexcept {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorSpec& tensor) { return tensor.name == tensor_name; });
  return found == tensors.end() ? nullptr : &*found;
}

int64_t kv_bytes_per_token(const ArchSpec& spec, const CacheGroupSpec& group, DType kv_dtype) noexcept {
  int64_t bytes = 0;
  for (const int32_t layer : group.layers) {
    const AttentionSpec& attention = spec.layers[static_cast<size_t>(layer)].attention;
    bytes += kv_block_bytes({.dtype = kv_dtype,
                             .kv_heads = attention.kv_heads,
                             .head_dim = attention.head_dim,
                             .v_head_dim = attention.v_head_dim}) /
             kBlockTokens;
  }
  return bytes;
}

void assign_cache_groups(ArchSpec& spec) {
  spec.cache_groups.clear();
  for (int32_t i = 0; i < spec.num_layers(); ++i) {
    LayerSpec& layer = spec.layers[static_cast<size_t>(i)];
    auto group = std::find_if(spec.cache_groups.begin(), spec.cache_groups.end(),
                              [&](const CacheGroupSpec& g) { return g.window == layer.attention.window; });
    if (group == spec.cache_groups.end()) {
      group = spec.cache_groups.insert(group, CacheGroupSpec{layer.attention.window, {}});
    }
    group->layers.push_back(i);
    layer.cache_group = static_cast<int32_t>(group - spec.cache_groups.begin());
  }
}

}  // namespace headrace
