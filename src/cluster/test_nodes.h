#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/placement.h"

namespace headrace::cluster {

inline constexpr int64_t kMb = 1'000'000;

/// Layers all alike: 10 MB and 1000 bytes of cache a token; embedding and output of 20 MB.
inline ModelUnits plain_model(int32_t layers) {
  ModelUnits model;
  model.embedding_bytes = model.output_bytes = 20 * kMb;
  model.layers.assign(static_cast<size_t>(layers),
                      {.weight_bytes = 10 * kMb, .kv_bytes_per_token = 1000, .cache_group = 0, .multiply_adds = 1e7});
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
          .costs = {.at = {{.rows = 16, .layer_seconds = layer_ms * 1e-3, .output_seconds = 2e-3 * layer_ms}},
                    .probe_layer_bytes = 10 * kMb},
          .link = {}};
}

inline std::vector<int32_t> layers_of(const Placement& placement) {
  std::vector<int32_t> layers;
  for (const NodeShare& share : placement.nodes) layers.push_back(share.units.num_layers());
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
