#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"

namespace headrace {

/// The free blocks of one cache group. Threading: the scheduler's thread only.
/// Invariant: a block is either free or leased, never both; free + leased == total.
class BlockPool {
 public:
  explicit BlockPool(int32_t num_blocks);

  /// `count` blocks, or nullopt and no change when fewer are free.
  [[nodiscard]] std::optional<std::vector<BlockId>> try_lease(int32_t count);
  /// Gives blocks back; each must be leased.
  void release(const std::vector<BlockId>& blocks) noexcept;

  [[nodiscard]] int32_t total() const noexcept { return static_cast<int32_t>(leased_.size()); }
  [[nodiscard]] int32_t free() const noexcept { return static_cast<int32_t>(free_.size()); }

 private:
  std::vector<BlockId> free_;
  std::vector<bool> leased_;
};

}  // namespace headrace
