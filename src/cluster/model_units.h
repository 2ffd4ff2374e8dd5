#pragma once

#include <cstdint>
#include <vector>

#include "arch/arch_spec.h"
#include "files/model_files.h"
#include "model/stage_units.h"

namespace headrace::cluster {

/// Layers that cache alike, as the model's cache groups have them.
struct UnitCacheGroup {
  int32_t window = 0;  ///< 0: full
};

/// What the attention or the feed-forward of a layer weighs and caches.
struct SublayerUnit {
  int64_t weight_bytes = 0;        ///< in the model's files
  int64_t kv_bytes_per_token = 0;  ///< of an attention
  int32_t cache_group = 0;         ///< of an attention: index into ModelUnits::groups
  double multiply_adds = 0;        ///< of a token, in its products
};

/// Bytes of weights of some sublayers, by kind: what they take is found from these.
struct SublayerBytes {
  int64_t attention = 0;
  int64_t feed_forward = 0;
  [[nodiscard]] int64_t total() const noexcept { return attention + feed_forward; }
};

/// What the units of placement of a model are.
struct ModelUnits {
  int64_t embedding_bytes = 0;
  int64_t output_bytes = 0;  ///< final norm and projection
  int64_t shared_bytes = 0;  ///< of the matrix in both of these, where they share one: a machine with both has it once
  double output_multiply_adds = 0;
  std::vector<SublayerUnit> sublayers;  ///< attention and feed-forward of each layer in turn
  std::vector<UnitCacheGroup> groups;
  int32_t hidden = 0;
  int32_t vocab_size = 0;
  int32_t max_positions = 0;
  int64_t token_workspace_bytes = 0;  ///< intermediate values of a token of a step (model/workspace.h)
  int64_t row_workspace_bytes = 0;    ///< the same in a stage without layers

  [[nodiscard]] int32_t num_sublayers() const noexcept { return static_cast<int32_t>(sublayers.size()); }
  [[nodiscard]] int32_t num_layers() const noexcept { return num_sublayers() / kSublayers; }
  [[nodiscard]] SublayerBytes sublayer_bytes(int32_t first, int32_t end) const noexcept;
  /// Bytes of the weights of a machine with these units, in the model's files.
  [[nodiscard]] int64_t weight_bytes(const StageUnits& units) const noexcept;
  [[nodiscard]] int64_t total_bytes() const noexcept;
};

/// Reads only the files' headers. Throws LoadError where a tensor is missing or has another shape than the spec says.
[[nodiscard]] ModelUnits model_units(const ArchSpec& spec, const ModelFiles& files, DType kv_dtype);

}  // namespace headrace::cluster
