#include "cluster/model_units.h"

#include "arch/registry.h"
#include "model/workspace.h"

namespace headrace::cluster {

SublayerBytes ModelUnits::sublayer_bytes(int32_t first, int32_t end) const noexcept {
  SublayerBytes bytes;
  for (int32_t i = first; i < end; ++i) {
    (i % kSublayers == 0 ? bytes.attention : bytes.feed_forward) += sublayers[static_cast<size_t>(i)].weight_bytes;
  }
  return bytes;
}

int64_t ModelUnits::weight_bytes(const StageUnits& units) const noexcept {
  int64_t bytes = (units.embedding ? embedding_bytes : 0) + (units.output ? output_bytes : 0);
  if (units.embedding && units.output) bytes -= shared_bytes;
  return bytes + sublayer_bytes(units.first_sublayer, units.end_sublayer).total();
}

int64_t ModelUnits::total_bytes() const noexcept {
  return weight_bytes({.embedding = true, .first_sublayer = 0, .end_sublayer = num_sublayers(), .output = true});
}

ModelUnits model_units(const ArchSpec& spec, const ModelFiles& files, DType kv_dtype) {
  ModelUnits units;
  units.hidden = spec.hidden;
  units.vocab_size = spec.vocab_size;
  units.max_positions = spec.max_positions;
  units.token_workspace_bytes = workspace_token_bytes(spec, true);
  units.row_workspace_bytes = workspace_token_bytes(spec, false);
  for (const CacheGroupSpec& group : spec.cache_groups) units.groups.push_back({.window = group.window});
  for (const LayerSpec& layer : spec.layers) {
    // Of the group as if it had this layer alone.
    const int32_t number = units.num_layers();
    units.sublayers.push_back(
        {.kv_bytes_per_token = kv_bytes_per_token(spec, CacheGroupSpec{.window = 0, .layers = {number}}, kv_dtype),
         .cache_group = layer.cache_group});
    units.sublayers.emplace_back();
  }
  for (const TensorSpec& tensor : spec.tensors) {
    const TensorView view = find_spec_tensor(files, tensor);
    const auto bytes = static_cast<int64_t>(view.bytes.size());
    const double multiply_adds = tensor.role == TensorRole::kVector ? 0 : static_cast<double>(num_elements(view.shape));
    switch (tensor.unit) {
      case UnitKind::kEmbedding:
        units.embedding_bytes += bytes;
        if (!spec.tied_output) break;
        units.shared_bytes += bytes;
        [[fallthrough]];  // the output projection is the same matrix
      case UnitKind::kOutput:
        units.output_bytes += bytes;
        units.output_multiply_adds += multiply_adds;
        break;
      case UnitKind::kAttention:
      case UnitKind::kFeedForward:
        const int32_t index = kSublayers * tensor.layer + (tensor.unit == UnitKind::kFeedForward ? 1 : 0);
        SublayerUnit& sublayer = units.sublayers[static_cast<size_t>(index)];
        sublayer.weight_bytes += bytes;
        sublayer.multiply_adds += multiply_adds;
        break;
    }
  }
  return units;
}

}  // namespace headrace::cluster
