#pragma once

#include <vector>

#include "backend/backend.h"

namespace headrace {

/// The slabs of the KV cache for some layers: each layer's blocks, indexed by the block ids of its cache group. Address
/// space is reserved for all blocks; a backend that can commits pages only as they are written.
class KvSlabs {
 public:
  struct Layer {
    KvLayout layout;
    int32_t num_blocks = 0;
  };
  KvSlabs(Backend& backend, const std::vector<Layer>& layers);

  [[nodiscard]] const KvLayout& layout(size_t layer) const noexcept { return layers_[layer].layout; }
  [[nodiscard]] std::byte* slab(size_t layer) const noexcept { return slabs_[layer].data(); }
  /// Bytes reserved.
  [[nodiscard]] int64_t bytes() const noexcept;

 private:
  std::vector<Layer> layers_;
  std::vector<DeviceBuffer> slabs_;
};

}  // namespace headrace
