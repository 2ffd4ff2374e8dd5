#include "cluster/model_units.h"

#include <algorithm>

#include "arch/registry.h"

namespace headrace::cluster {
namespace {

/// Copies of the widest rows that hold rounded activations, one for each form: none is wider than f32.
constexpr int64_t kActivationForms = 3;

int64_t workspace_floats(const ArchSpec& spec) {
  int64_t most = 0;
  for (const LayerSpec& layer : spec.layers) {
    const AttentionSpec& a = layer.attention;
    const int64_t q = int64_t{a.heads} * a.head_dim, mixed = int64_t{a.heads} * a.v_head_dim;
    const int64_t kv = int64_t{a.kv_heads} * (a.head_dim + a.v_head_dim);
    const int64_t ffn = layer.feed_forward.hidden;
    const int64_t widest = std::max({int64_t{spec.hidden}, mixed, ffn});
    most = std::max(most, 3 * int64_t{spec.hidden} + q + kv + mixed + 2 * ffn + kActivationForms * widest);
  }
  for (const RopeSpec& rope : spec.ropes) most += 2 * static_cast<int64_t>(rope.inv_freq.size());
  return most;
}

}  // namespace

int64_t ModelUnits::weight_bytes(const StageUnits& units) const noexcept {
  int64_t bytes = (units.embedding ? embedding_bytes : 0) + (units.output ? output_bytes : 0);
  for (int32_t i = units.first_layer; i < units.end_layer; ++i) bytes += layers[static_cast<size_t>(i)].weight_bytes;
  return bytes;
}

int64_t ModelUnits::total_bytes() const noexcept {
  return weight_bytes({.embedding = true, .first_layer = 0, .end_layer = num_layers(), .output = true});
}

ModelUnits model_units(const ArchSpec& spec, const ModelFiles& files, DType kv_dtype) {
  ModelUnits units;
  units.hidden = spec.hidden;
  units.vocab_size = spec.vocab_size;
  units.max_positions = spec.max_positions;
  units.token_workspace_bytes = workspace_floats(spec) * static_cast<int64_t>(sizeof(float));
  for (const CacheGroupSpec& group : spec.cache_groups) units.groups.push_back({.window = group.window});
  for (const LayerSpec& layer : spec.layers) {
    // Of the group as if it had this layer alone.
    const int32_t number = units.num_layers();
    units.layers.push_back(
        {.kv_bytes_per_token = kv_bytes_per_token(spec, CacheGroupSpec{.window = 0, .layers = {number}}, kv_dtype),
         .cache_group = layer.cache_group});
  }
  for (const TensorSpec& tensor : spec.tensors) {
    const TensorView view = find_spec_tensor(files, tensor);
    const auto bytes = static_cast<int64_t>(view.bytes.size());
    const double multiply_adds = tensor.role == TensorRole::kVector ? 0 : static_cast<double>(num_elements(view.shape));
    switch (tensor.unit) {
      case UnitKind::kEmbedding:
        units.embedding_bytes += bytes;
        if (!spec.tied_output) break;
        [[fallthrough]];  // the output projection is the same matrix
      case UnitKind::kOutput:
        units.output_bytes += bytes;
        units.output_multiply_adds += multiply_adds;
        break;
      case UnitKind::kLayer:
        LayerUnit& layer = units.layers[static_cast<size_t>(tensor.layer)];
        layer.weight_bytes += bytes;
        layer.multiply_adds += multiply_adds;
        break;
    }
  }
  return units;
}

}  // namespace headrace::cluster
