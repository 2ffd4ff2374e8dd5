#pragma once

#include <cstddef>
#include <cstdint>

#include "cluster/placement.h"
#include "headrace/cluster.h"

namespace headrace::cluster {

/// Clients that each send their next request when the last one is answered.
struct PredictedLoad {
  int32_t clients = 0;  ///< 0: as many as keep the nodes busy, 16 for each
  int32_t prompt_tokens = 256;
  int32_t output_tokens = 128;
  int32_t requests_per_client = 4;

  [[nodiscard]] int32_t clients_of(size_t nodes) const noexcept {
    constexpr int32_t kEach = 16;
    return clients > 0 ? clients : kEach * static_cast<int32_t>(nodes);
  }
};

/// What a server is told of its KV cache and steps.
struct ServingLimits {
  int32_t max_step_tokens = 512;
  int32_t max_model_len = 0;
  int32_t max_num_seqs = 0;
  int64_t kv_cache_bytes = 0;
};

/// What `place` is asked for, by whoever serves and whoever plans. Times are compared for the steps that the load
/// makes: the clients' rows shared among as many steps as there are nodes, and with each token of an answer its share
/// of the prompt. Throws Error(kInvalidArgument) for a word in `wishes` that means nothing.
[[nodiscard]] PlacementOptions placement_options(const ClusterOptions& wishes, const ModelUnits& model, size_t nodes,
                                                 const ServingLimits& limits, const PredictedLoad& load);

}  // namespace headrace::cluster
