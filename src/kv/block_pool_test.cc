#include "kv/block_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

namespace headrace {
namespace {

/// Against a map from block to owners: a lease gives the lowest block without any, and only the last owner frees one.
RC_GTEST_PROP(BlockPool, NeverLeaksOrSharesABlock, ()) {
  int32_t total = *rc::gen::inRange(0, 20);
  BlockPool pool(total);
  std::map<BlockId, int32_t> owners;
  for (const int action : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 80))) {
    if (action < 20 && pool.free() > 0) {
      int32_t lowest = 0;
      while (owners.contains(BlockId{lowest})) ++lowest;
      const BlockId block = pool.lease();
      RC_ASSERT(block == BlockId{lowest});
      owners[block] = 1;
    } else if (action < 60 && !owners.empty()) {
      auto it = std::next(owners.begin(), action % static_cast<int>(owners.size()));
      if (action < 30) {
        pool.retain(it->first);
        ++it->second;
      } else {
        pool.release(it->first);
        if (--it->second == 0) owners.erase(it);
      }
    } else if (action >= 60) {
      const int32_t least = owners.empty() ? 0 : raw(owners.rbegin()->first) + 1;
      total = std::max(least, action - 60);
      pool.resize(total);
    }
    RC_ASSERT(pool.total() == total);
    RC_ASSERT(pool.leased() == static_cast<int32_t>(owners.size()));
    RC_ASSERT(pool.free() + pool.leased() == total);
    for (const auto& [block, n] : owners) RC_ASSERT(pool.owners(block) == n);
  }
}

TEST(BlockPoolDeathTest, RefusesWhatItDoesNotHave) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  BlockPool pool(2);
  const BlockId block = pool.lease();
  EXPECT_DEATH(pool.resize(0), "is leased");
  pool.release(block);
  EXPECT_DEATH(pool.release(block), "is not leased");
  EXPECT_DEATH(pool.retain(block), "is not leased");
  BlockPool empty(0);
  EXPECT_DEATH((void)empty.lease(), "no free block");
}

}  // namespace
}  // namespace headrace
