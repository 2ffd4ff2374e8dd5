#pragma once

#include <algorithm>

#include "kv/block_pool.h"
#include "kv/index_list.h"
#include "kv/prefix_tree.h"

namespace headrace {

/// The blocks of one cache group with what the prefix tree has to do with them. Owners of a block are the sequences
/// that hold it and, where it is findable, its node in the tree. In a window group a block that only its node owns can
/// be given up on its own; in a full group it goes with its node.
class CacheGroup {
 public:
  CacheGroup(int32_t num_blocks, int32_t window) : window_(window), pool_(0) { resize(num_blocks); }

  [[nodiscard]] bool full() const noexcept { return window_ == 0; }
  [[nodiscard]] int32_t window() const noexcept { return window_; }
  [[nodiscard]] const BlockPool& pool() const noexcept { return pool_; }
  /// First position that a query at `position` sees.
  [[nodiscard]] int32_t first_seen(int32_t position) const noexcept {
    return full() ? 0 : std::max(0, position - window_ + 1);
  }

  /// A free block, for one sequence.
  [[nodiscard]] BlockId lease() { return pool_.lease(); }
  /// One more sequence holds the block.
  void hold(BlockId block) noexcept {
    if (cached_.contains(raw(block))) cached_.remove(raw(block));
    pool_.retain(block);
  }
  /// One sequence less.
  void drop(BlockId block) {
    pool_.release(block);
    if (!full() && pool_.owners(block) == 1 && node(block) != kNoNode) cached_.push_back(raw(block));
  }
  /// A block that sequences hold becomes findable.
  void attach(BlockId block, NodeId to) noexcept {
    pool_.retain(block);
    nodes_[index(block)] = to;
  }
  /// The block's node forgets it.
  void detach(BlockId block) {
    if (cached_.contains(raw(block))) cached_.remove(raw(block));
    nodes_[index(block)] = kNoNode;
    pool_.release(block);
  }

  /// The node that the block belongs to, or kNoNode.
  [[nodiscard]] NodeId node(BlockId block) const noexcept { return nodes_[index(block)]; }
  /// Blocks that only their nodes own, of a window group.
  [[nodiscard]] int32_t num_cached() const noexcept { return cached_.size(); }
  [[nodiscard]] BlockId oldest_cached() const noexcept { return BlockId{cached_.front()}; }
  [[nodiscard]] bool is_cached(BlockId block) const noexcept { return cached_.contains(raw(block)); }

  /// Blocks beyond the new end must be free.
  void resize(int32_t num_blocks) {
    pool_.resize(num_blocks);
    nodes_.resize(static_cast<size_t>(num_blocks), kNoNode);
    cached_.resize(num_blocks);
  }

 private:
  static size_t index(BlockId block) noexcept { return static_cast<size_t>(raw(block)); }

  int32_t window_;
  BlockPool pool_;
  std::vector<NodeId> nodes_;  // of each block
  IndexList cached_;           // window groups: the oldest first
};

}  // namespace headrace
