#include "kv/cache_manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kv/cache_size.h"

namespace headrace {
namespace {

std::vector<TokenId> counted(int32_t n, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// Opens a sequence and has all its tokens submitted. Returns what was found.
int32_t run(CacheManager& cache, SequenceId id, const std::vector<TokenId>& tokens, uint64_t salt = 0) {
  const int32_t found = cache.open(id, tokens, salt);
  const auto end = static_cast<int32_t>(tokens.size());
  EXPECT_TRUE(cache.reserve(id, end));
  cache.submitted(id, tokens, end);
  return found;
}

constexpr SequenceId kA{1}, kB{2}, kC{3};

TEST(CacheManager, FindsWholeBlocksAndLeavesATokenToCompute) {
  CacheManager cache({.groups = {{.num_blocks = 10}}});
  const std::vector<TokenId> tokens = counted(32);
  EXPECT_EQ(run(cache, kA, tokens), 0);
  EXPECT_EQ(cache.open(kB, tokens, 0), 16);
  EXPECT_EQ(cache.table(kB, 0)[0], cache.table(kA, 0)[0]);
  EXPECT_EQ(cache.open(kC, counted(33), 0), 32);
  EXPECT_EQ(cache.open(SequenceId{4}, counted(33), 1), 0) << "another salt";
  EXPECT_EQ(cache.open(SequenceId{5}, counted(33, 1), 0), 0) << "other tokens";
  const CacheFigures figures = cache.figures();
  EXPECT_EQ(figures.query_tokens, 32 + 32 + 33 + 33 + 33);
  EXPECT_EQ(figures.hit_tokens, 48);
  EXPECT_EQ(figures.used_blocks, 2);
  EXPECT_EQ(figures.used_tokens, 32);
}

TEST(CacheManager, WithoutPrefixCachingNothingIsFound) {
  CacheManager cache({.groups = {{.num_blocks = 10}}, .prefix_caching = false});
  EXPECT_EQ(run(cache, kA, counted(40)), 0);
  cache.close(kA);
  EXPECT_EQ(run(cache, kA, counted(40)), 0);
  EXPECT_EQ(cache.figures().cached_blocks, 0);
}

TEST(CacheManager, GivesUpTheOldestPrefixFromItsEnd) {
  CacheManager cache({.groups = {{.num_blocks = 4}}});
  run(cache, kA, counted(32));
  cache.close(kA);
  run(cache, kB, counted(32, 100));
  cache.close(kB);
  EXPECT_EQ(cache.figures().cached_blocks, 4);
  EXPECT_EQ(cache.available_tokens(), 64);
  EXPECT_EQ(run(cache, kC, counted(16, 200)), 0);
  EXPECT_EQ(cache.figures().evicted_blocks, 1);
  EXPECT_EQ(cache.open(kA, counted(33), 0), 16) << "its second block went";
  EXPECT_EQ(cache.open(kB, counted(33, 100), 0), 32);
  EXPECT_FALSE(cache.reserve(kA, 48));
  EXPECT_EQ(cache.table(kA, 0).size(), 1u);
  EXPECT_EQ(cache.available_tokens(), 0);
}

TEST(CacheManager, OfTwoSequencesThatComputeTheSameOneCopyStays) {
  CacheManager cache({.groups = {{.num_blocks = 8}}});
  const std::vector<TokenId> tokens = counted(40);
  cache.open(kA, tokens, 0);
  cache.open(kB, tokens, 0);
  for (const SequenceId id : {kA, kB}) {
    ASSERT_TRUE(cache.reserve(id, 40));
    cache.submitted(id, tokens, 40);
  }
  EXPECT_NE(cache.table(kA, 0)[0], cache.table(kB, 0)[0]);
  const BlockId kept = cache.table(kA, 0)[1];
  cache.close(kA);
  EXPECT_EQ(cache.figures().used_blocks, 5) << "what follows B's prefix is found through A's blocks";
  cache.close(kB);
  EXPECT_EQ(cache.figures().used_blocks, 0);
  EXPECT_EQ(cache.figures().cached_blocks, 2);
  EXPECT_EQ(cache.open(kC, tokens, 0), 32);
  EXPECT_EQ(cache.table(kC, 0)[1], kept);
}

TEST(CacheManager, AWindowGroupHoldsItsWindowAndIsFoundByIt) {
  CacheManager cache({.groups = {{.num_blocks = 100}, {.num_blocks = 5, .window = 32}}});
  const std::vector<TokenId> tokens = counted(161);
  cache.open(kA, tokens, 0);
  for (int32_t end = 16; end <= 160; end += 16) {
    ASSERT_TRUE(cache.reserve(kA, end)) << end;
    cache.submitted(kA, tokens, end);
  }
  // Position 160 sees 129 to 160: blocks 8 and 9. Others may be in the cache until they are needed.
  EXPECT_EQ(cache.figures().used_blocks, 10 + 2);
  EXPECT_EQ(cache.figures().cached_blocks, 3);
  EXPECT_EQ(cache.table(kA, 1)[7], BlockId{0});
  const std::vector<BlockId> held(cache.table(kA, 1).begin() + 8, cache.table(kA, 1).end());
  cache.close(kA);
  EXPECT_EQ(cache.open(kB, tokens, 0), 160);
  EXPECT_TRUE(std::ranges::equal(cache.table(kB, 1).subspan(8), held));
  EXPECT_EQ(cache.open(kC, counted(64), 0), 0) << "what position 48 sees was given up";
  EXPECT_EQ(cache.open(SequenceId{4}, counted(140), 0), 128);
}

TEST(CacheManager, AForkSharesWholeBlocksAndCopiesTheLast) {
  for (const bool prefix_caching : {true, false}) {
    CacheManager cache(
        {.groups = {{.num_blocks = 5}, {.num_blocks = 5, .window = 32}}, .prefix_caching = prefix_caching});
    run(cache, kA, counted(40));
    const auto copies = cache.fork(kA, kB, 40);
    ASSERT_TRUE(copies);
    ASSERT_EQ(copies->size(), 2u);
    for (const BlockCopy& copy : *copies) {
      EXPECT_EQ(copy.from, cache.table(kA, copy.group)[2]);
      EXPECT_EQ(copy.to, cache.table(kB, copy.group)[2]);
      EXPECT_NE(copy.from, copy.to);
      EXPECT_EQ(cache.table(kA, copy.group)[1], cache.table(kB, copy.group)[1]);
    }
    EXPECT_EQ(cache.figures().used_tokens, 2 * (40 + 8));
    EXPECT_EQ(cache.fork(kA, kC, 32)->size(), 0u) << "nothing partial";
    EXPECT_TRUE(cache.fork(kA, SequenceId{4}, 39));
    EXPECT_FALSE(cache.fork(kA, SequenceId{5}, 39)) << "no block is left";
    for (const SequenceId id : {kA, kB, kC, SequenceId{4}}) cache.close(id);
    EXPECT_EQ(cache.figures().used_blocks, 0);
    EXPECT_EQ(cache.figures().used_tokens, 0);
  }
}

TEST(CacheManager, AForkBehindAWindowNeedsWhatIsStillCached) {
  CacheManager cache({.groups = {{.num_blocks = 3, .window = 16}}});
  run(cache, kA, counted(16));
  ASSERT_TRUE(cache.reserve(kA, 48));
  cache.submitted(kA, counted(48), 48);
  EXPECT_TRUE(cache.fork(kA, kB, 32)) << "the second block is cached";
  cache.close(kB);
  run(cache, kC, counted(16, 100));
  EXPECT_FALSE(cache.fork(kA, kB, 16)) << "the first one was given up";
  EXPECT_TRUE(cache.fork(kA, kB, 48));
}

TEST(CacheManager, ClearedPrefixesAreNotFoundNorWhatIsAddedToThem) {
  CacheManager cache({.groups = {{.num_blocks = 8}, {.num_blocks = 8, .window = 16}}});
  run(cache, kA, counted(40));
  cache.close(kA);
  run(cache, kB, counted(40));
  cache.clear_prefixes();
  EXPECT_EQ(cache.figures().cached_blocks, 0);
  ASSERT_TRUE(cache.reserve(kB, 64));
  cache.submitted(kB, counted(64), 64);
  EXPECT_EQ(cache.open(kC, counted(64), 0), 0);
  cache.close(kB);
  EXPECT_EQ(cache.figures().free_blocks, 16);
  run(cache, kA, counted(40));
  EXPECT_EQ(cache.open(kB, counted(40), 0), 32);
}

TEST(CacheManager, ReservesByExpectedLengthInFullGroupsOnly) {
  CacheManager cache({.groups = {{.num_blocks = 8}, {.num_blocks = 2, .window = 16}}});
  cache.open(kA, counted(16), 0);
  EXPECT_FALSE(cache.reserve(kA, 16, 129));
  EXPECT_TRUE(cache.reserve(kA, 16, 128));
  EXPECT_EQ(cache.table(kA, 0).size(), 8u);
  EXPECT_EQ(cache.table(kA, 1).size(), 1u);
  cache.open(kB, counted(16), 0);
  EXPECT_FALSE(cache.reserve(kB, 1));
  EXPECT_EQ(cache.available_tokens(), 0);
  EXPECT_EQ(cache.figures().used_tokens, 0);
}

TEST(CacheManager, ShrinksOverCachedBlocksAndNotOverUsedOnes) {
  CacheManager cache({.groups = {{.num_blocks = 6}, {.num_blocks = 6, .window = 16}}});
  run(cache, kA, counted(64));
  run(cache, kB, counted(16, 100));
  cache.close(kA);
  EXPECT_FALSE(cache.resize(0, 4)) << "B's block is the fifth";
  cache.close(kB);
  EXPECT_TRUE(cache.resize(0, 2));
  EXPECT_TRUE(cache.resize(1, 3));
  EXPECT_EQ(cache.figures().total_blocks, 5);
  EXPECT_EQ(run(cache, kA, counted(32, 200)), 0);
  EXPECT_FALSE(cache.reserve(kA, 33));
  EXPECT_TRUE(cache.resize(0, 3));
  EXPECT_TRUE(cache.reserve(kA, 33));
}

/// A model of six layers, five of them with a window of 1024, in memory for 12 000 blocks of one layer: how many
/// sequences of 8000 tokens run at once, their prompts (all but the last 500 tokens) in chunks of 512, one sequence
/// after the other, then a token of each in turn.
int32_t sequences_that_fit(const std::vector<CacheGroupConfig>& groups) {
  constexpr int32_t kLength = 8000;
  CacheManager cache({.groups = groups});
  int32_t fit = 0;
  for (int32_t n = 1; n < 100; ++n) {
    const std::vector<TokenId> tokens = counted(kLength, n * kLength);
    const SequenceId id{static_cast<uint64_t>(n)};
    cache.open(id, tokens, 0);
    for (int32_t end = 0; end < kLength;) {
      end = std::min(kLength, end < 7500 ? std::min(7500, end + 512) : end + 1);
      if (!cache.reserve(id, end)) return fit;
      cache.submitted(id, tokens, end);
    }
    fit = n;
  }
  return fit;
}

TEST(CacheManager, WindowGroupsFitThreeTimesTheTokens) {
  const int32_t without = sequences_that_fit({{.num_blocks = 12000 / 6}});
  EXPECT_EQ(without, 4);
  const CacheGroupCost groups[] = {{.window = 0, .block_bytes = 1}, {.window = 1024, .block_bytes = 5}};
  const std::vector<int32_t> blocks = blocks_for_memory(12000, groups, 16, 8000, 512);
  EXPECT_LE(blocks[0] + 5 * blocks[1], 12000);
  const int32_t with = sequences_that_fit({{.num_blocks = blocks[0]}, {.num_blocks = blocks[1], .window = 1024}});
  EXPECT_EQ(with, 14);
  EXPECT_GE(with, 3 * without);
}

}  // namespace
}  // namespace headrace
