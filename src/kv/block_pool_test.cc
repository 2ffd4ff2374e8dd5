#include "kv/block_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace headrace {
namespace {

RC_GTEST_PROP(BlockPool, NeverLeaksOrSharesABlock, ()) {
  const int32_t total = *rc::gen::inRange(0, 20);
  BlockPool pool(total);
  std::vector<std::vector<BlockId>> leases;
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-5, 6));
  for (const int step : steps) {
    if (step >= 0) {
      const int32_t free = pool.free();
      auto blocks = pool.try_lease(step);
      RC_ASSERT(blocks.has_value() == (step <= free));
      if (blocks) leases.push_back(*blocks);
    } else if (!leases.empty()) {
      const size_t which = static_cast<size_t>(-step) % leases.size();
      pool.release(leases[which]);
      leases.erase(leases.begin() + static_cast<std::ptrdiff_t>(which));
    }
    std::set<BlockId> seen;
    size_t leased = 0;
    for (const auto& lease : leases) {
      leased += lease.size();
      seen.insert(lease.begin(), lease.end());
    }
    RC_ASSERT(seen.size() == leased);
    RC_ASSERT(pool.free() + static_cast<int32_t>(leased) == total);
  }
}

TEST(BlockPoolDeath, RefusesADoubleRelease) {
  BlockPool pool(2);
  const auto blocks = pool.try_lease(1);
  pool.release(*blocks);
  EXPECT_DEATH(pool.release(*blocks), "not leased");
}

}  // namespace
}  // namespace headrace
