#include "arch/arch_spec.h"

#include <algorithm>

#include "base/cat.h"
#include "base/error.h"

namespace headrace {

ShardRange split_evenly(int64_t size, int64_t unit, int32_t rank, int32_t ranks) noexcept {
  const int64_t units = (size + unit - 1) / unit;
  const auto edge = [&](int64_t r) { return std::min(units * r / ranks * unit, size); };
  return {edge(rank), edge(rank + 1)};
}

ShardRange shard_range(const TensorSpec& tensor, int32_t rank, int32_t ranks) noexcept {
  const int64_t rows = tensor.shape.front();
  switch (tensor.shard) {
    case Shard::kCopy:
      return {0, rows};
    case Shard::kRows:
      return split_evenly(rows, tensor.shard_unit, rank, ranks);
    case Shard::kFirst:
      return {rank == 0 ? 0 : rows, rows};
  }
  return {0, 0};
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

void check_ranks(const ArchSpec& spec, int32_t ranks) {
  for (const LayerSpec& layer : spec.layers) {
    if (layer.attention.kv_heads % ranks == 0) continue;
    throw Error(ErrorCode::kUnsupported,
                cat("the model's ", layer.attention.kv_heads, " KV heads (", layer.attention.heads,
                    " heads) cannot be divided evenly over ", ranks, " ranks"));
  }
  for (const TensorSpec& tensor : spec.tensors) {
    if (tensor.shard != Shard::kRows || shard_range(tensor, 0, ranks).size() > 0) continue;
    throw Error(ErrorCode::kUnsupported,
                cat(tensor.name, ": ", tensor.shape.front(), " rows are too few for ", ranks, " ranks"));
  }
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
