#include "kv/block_pool.h"

#include "base/check.h"

namespace headrace {

BlockPool::BlockPool(int32_t num_blocks) : leased_(static_cast<size_t>(num_blocks), false) {
  free_.reserve(static_cast<size_t>(num_blocks));
  // Low ids are handed out first, so that a lightly used cache touches little memory.
  for (int32_t id = num_blocks - 1; id >= 0; --id) free_.push_back(BlockId{id});
}

std::optional<std::vector<BlockId>> BlockPool::try_lease(int32_t count) {
  if (count > free()) return std::nullopt;
  std::vector<BlockId> blocks;
  blocks.reserve(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    blocks.push_back(free_.back());
    leased_[static_cast<size_t>(raw(free_.back()))] = true;
    free_.pop_back();
  }
  return blocks;
}

void BlockPool::release(const std::vector<BlockId>& blocks) noexcept {
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    HR_CHECK(leased_[static_cast<size_t>(raw(*block))], "block ", raw(*block), " is not leased");
    leased_[static_cast<size_t>(raw(*block))] = false;
    free_.push_back(*block);
  }
}

}  // namespace headrace
