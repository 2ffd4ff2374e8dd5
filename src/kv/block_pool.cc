#include "kv/block_pool.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace headrace {

BlockId BlockPool::lease() {
  HR_CHECK(!free_.empty(), "no free block");
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const int32_t id = free_.back();
  free_.pop_back();
  owners_[static_cast<size_t>(id)] = 1;
  return BlockId{id};
}

void BlockPool::retain(BlockId block) noexcept {
  HR_CHECK(owners(block) > 0, "block ", raw(block), " is not leased");
  ++owners_[static_cast<size_t>(raw(block))];
}

void BlockPool::release(BlockId block) {
  HR_CHECK(owners(block) > 0, "block ", raw(block), " is not leased");
  if (--owners_[static_cast<size_t>(raw(block))] > 0) return;
  free_.push_back(raw(block));
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

void BlockPool::resize(int32_t num_blocks) {
  HR_CHECK(num_blocks >= 0, "blocks ", num_blocks);
  const int32_t before = total();
  for (int32_t id = num_blocks; id < before; ++id) HR_CHECK(owners(BlockId{id}) == 0, "block ", id, " is leased");
  owners_.resize(static_cast<size_t>(num_blocks), 0);
  std::erase_if(free_, [&](int32_t id) { return id >= num_blocks; });
  for (int32_t id = before; id < num_blocks; ++id) free_.push_back(id);
  std::make_heap(free_.begin(), free_.end(), std::greater<>());
}

}  // namespace headrace
