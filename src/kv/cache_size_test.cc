#include "kv/cache_size.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headrace {
namespace {

/// Against a walk over all positions at which a chunk may begin.
TEST(CacheSize, MostBlocksHeldIsTheMostOfAnyChunk) {
  for (const int32_t window : {0, 1, 2, 15, 16, 17, 40}) {
    for (const int32_t chunk : {1, 2, 16, 17, 50}) {
      for (const int32_t tokens : {1, 15, 16, 17, 33, 200}) {
        int32_t most = 0;
        for (int32_t begin = 0; begin < tokens; ++begin) {
          const int32_t end = std::min(tokens, begin + chunk);
          const int32_t first = window == 0 ? 0 : std::max(0, begin - window + 1) / 16;
          most = std::max(most, (end + 15) / 16 - first);
        }
        EXPECT_EQ(most_blocks_held(window, 16, tokens, chunk), most) << window << " " << chunk << " " << tokens;
      }
    }
  }
}

TEST(CacheSize, MemoryIsUsedAndNotExceeded) {
  const CacheGroupCost groups[] = {{.window = 0, .block_bytes = 1000}, {.window = 1024, .block_bytes = 5000}};
  for (const int64_t bytes : {int64_t{100'000}, int64_t{12'000'000}, int64_t{1} << 40}) {
    const std::vector<int32_t> blocks = blocks_for_memory(bytes, groups, 16, 8000, 512);
    const int64_t used = int64_t{blocks[0]} * 1000 + int64_t{blocks[1]} * 5000;
    EXPECT_LE(used, bytes);
    EXPECT_GT(used, bytes - 6000);
  }
  // 15 sequences of 500 and 65 blocks take 15 x 825 000 bytes; a chunk of 512 takes 31 or 32 blocks more.
  EXPECT_EQ(blocks_for_memory(15 * 825'000 + 32 * 5000, groups, 16, 8000, 512), (std::vector<int32_t>{7500, 1007}));
}

}  // namespace
}  // namespace headrace
