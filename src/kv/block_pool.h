#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace headrace {

/// The blocks of one cache group: free, or leased by a number of owners. Threading: the scheduler's thread only.
/// Invariants: a block without owners is free; free + leased == total.
class BlockPool {
 public:
  explicit BlockPool(int32_t num_blocks) { resize(num_blocks); }

  /// A free block, which there must be, for one owner: the lowest, so that a lightly used cache touches little memory
  /// and can shrink.
  [[nodiscard]] BlockId lease();
  /// One more owner of a leased block.
  void retain(BlockId block) noexcept;
  /// One owner less; the last one frees the block.
  void release(BlockId block);

  [[nodiscard]] int32_t owners(BlockId block) const noexcept { return owners_[static_cast<size_t>(raw(block))]; }
  [[nodiscard]] int32_t total() const noexcept { return static_cast<int32_t>(owners_.size()); }
  [[nodiscard]] int32_t free() const noexcept { return static_cast<int32_t>(free_.size()); }
  [[nodiscard]] int32_t leased() const noexcept { return total() - free(); }

  /// Adds free blocks at the end, or takes blocks away there, which must be free.
  void resize(int32_t num_blocks);

 private:
  std::vector<int32_t> owners_;  // of each block
  std::vector<int32_t> free_;    // a heap, the lowest on top
};

}  // namespace headrace
