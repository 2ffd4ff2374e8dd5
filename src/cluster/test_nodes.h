#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/placement.h"

namespace headrace::cluster {

inline constexpr int64_t kMb = 1'000'000;

/// A quarter of weights and products is the attention's.
inline void add_layer(ModelUnits& model, int64_t weight_bytes, int64_t kv_bytes_per_token, double multiply_adds,
                      int32_t cache_group = 0) {
  model.sublayers.push_back({.weight_bytes = weight_bytes / 4,
                             .kv_bytes_per_token = kv_bytes_per_token,
                             .cache_group = cache_group,
                             .multiply_adds = multiply_adds / 4});
  model.sublayers.push_back({.weight_bytes = weight_bytes - weight_bytes / 4, .multiply_adds = multiply_adds * 3 / 4});
}

/// What a layer of that many bytes takes, a quarter of it in the attention.
inline UnitSeconds unit_seconds(int32_t rows, double layer_seconds, double output_seconds) {
  return {.rows = rows,
          .attention_seconds = layer_seconds / 4,
          .feed_forward_seconds = layer_seconds * 3 / 4,
          .output_seconds = output_seconds};
}
inline SublayerBytes layer_bytes(int64_t bytes) { return {.attention = bytes / 4, .feed_forward = bytes - bytes / 4}; }

/// Layers all alike: 10 MB and 1000 bytes of cache a token; embedding and output of 20 MB.
inline ModelUnits plain_model(int32_t layers) {
  ModelUnits model;
  model.embedding_bytes = model.output_bytes = 20 * kMb;
  for (int32_t i = 0; i < layers; ++i) add_layer(model, 10 * kMb, 1000, 1e7);
  model.groups = {{.window = 0}};
  model.hidden = 100;
  model.vocab_size = 1000;
  model.max_positions = 4096;
  model.token_workspace_bytes = 1000;
  model.row_workspace_bytes = 300;
  return model;
}

/// A node that takes that many ms for a layer of the plain model and twice as long for the output.
inline NodeOffer node(const std::string& name, double layer_ms, int64_t memory_mb) {
  return {.name = name,
          .memory_bytes = memory_mb * kMb,
          .costs = {.at = {unit_seconds(16, layer_ms * 1e-3, 2e-3 * layer_ms)}, .probe_bytes = layer_bytes(10 * kMb)},
          .link = {}};
}

inline std::vector<double> layers_of(const Placement& placement) {
  std::vector<double> layers;
  for (const NodeShare& share : placement.nodes) layers.push_back(in_layers(share.units.num_sublayers()));
  return layers;
}

inline Error error_of_place(const ModelUnits& model, const std::vector<NodeOffer>& nodes,
                            const PlacementOptions& options) {
  try {
    (void)place(model, nodes, options);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "no error");
}

}  // namespace headrace::cluster
