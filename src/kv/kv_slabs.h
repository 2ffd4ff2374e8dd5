#pragma once

#include <vector>

#include "backend/backend.h"
#include "base/ids.h"
#include "step/step_plan.h"

namespace headrace {

/// The slabs of the KV cache for some layers: each layer's blocks, indexed by the block ids of its cache group. Address
/// space is reserved for all blocks; a backend that can commits pages only as they are written.
class KvSlabs {
 public:
  struct Layer {
    int32_t number = 0;  ///< in the model
    int32_t group = 0;   ///< cache group
    KvLayout layout;
    int32_t num_blocks = 0;  ///< the most that there will be
    bool operator==(const Layer&) const = default;
  };
  KvSlabs(Backend& backend, const std::vector<Layer>& layers);

  [[nodiscard]] const std::vector<Layer>& layers() const noexcept { return layers_; }
  [[nodiscard]] const KvLayout& layout(size_t layer) const noexcept { return layers_[layer].layout; }
  [[nodiscard]] std::byte* slab(size_t layer) const noexcept { return slabs_[layer].data(); }
  [[nodiscard]] std::byte* block(size_t layer, BlockId block) const noexcept {
    return slab(layer) + raw(block) * kv_block_bytes(layout(layer));
  }
  /// Bytes reserved.
  [[nodiscard]] int64_t bytes() const noexcept;

  /// Enqueues the copy, in every layer of its group.
  void copy(Queue& queue, const BlockCopy& copy) const noexcept;
  /// From now on only blocks below `num_blocks` of the group are used, at most those reserved: the memory that others
  /// took is given back. No queue may still have work that uses these.
  void resize(int32_t group, int32_t num_blocks) noexcept;

 private:
  Backend& backend_;
  std::vector<Layer> layers_;
  std::vector<DeviceBuffer> slabs_;
};

}  // namespace headrace
