#include "kv/kv_slabs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "backend/cpu/cpu_backend.h"

namespace headrace {
namespace {

class KvSlabsTest : public testing::Test {
 protected:
  /// 1 KiB a block and layer.
  static KvSlabs::Layer layer(int32_t group, int32_t num_blocks) {
    return {.number = group,
            .group = group,
            .layout = {.dtype = DType::kF32, .kv_heads = 1, .head_dim = 8, .v_head_dim = 8},
            .num_blocks = num_blocks};
  }
  static void fill(const KvSlabs& slabs, size_t layer, int32_t block, uint8_t value) {
    std::fill_n(slabs.block(layer, BlockId{block}), 1024, std::byte{value});
  }
  static int64_t resident_bytes(const std::byte* begin, int64_t bytes) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    std::vector<unsigned char> resident(static_cast<size_t>((bytes + page - 1) / page));
    EXPECT_EQ(mincore(const_cast<std::byte*>(begin), static_cast<size_t>(bytes), resident.data()), 0);
    return page * std::ranges::count_if(resident, [](unsigned char r) { return (r & 1) != 0; });
  }

  ComputePool pool_{1};
  const std::unique_ptr<Backend> backend_ = make_cpu_backend(pool_, Isa::kRef);
};

TEST_F(KvSlabsTest, CopiesABlockInEveryLayerOfItsGroup) {
  const KvSlabs slabs(*backend_, {layer(0, 4), layer(1, 4), layer(0, 4)});
  for (const size_t i : {0, 1, 2}) fill(slabs, i, 1, static_cast<uint8_t>(10 + i));
  const std::unique_ptr<Queue> queue = backend_->make_queue();
  slabs.copy(*queue, {.group = 0, .from = BlockId{1}, .to = BlockId{3}});
  queue->synchronize();
  for (const size_t i : {0, 1, 2}) {
    for (int32_t block = 0; block < 4; ++block) {
      const bool written = block == 1 || (block == 3 && i != 1);
      EXPECT_THAT(std::span(slabs.block(i, BlockId{block}), 1024),
                  testing::Each(written ? static_cast<std::byte>(10 + i) : std::byte{0}))
          << "layer " << i << " block " << block;
    }
  }
}

TEST_F(KvSlabsTest, TakesMemoryAsBlocksAreWrittenAndGivesItBackWhenItShrinks) {
  constexpr int32_t kBlocks = 16 << 10;
  constexpr int64_t kMiB = 1 << 20;
  KvSlabs slabs(*backend_, {layer(0, kBlocks), layer(1, kBlocks)});
  EXPECT_EQ(slabs.bytes(), 32 * kMiB);
  EXPECT_EQ(resident_bytes(slabs.slab(0), 16 * kMiB), 0);
  for (const size_t i : {0, 1}) {
    for (int32_t block = 0; block < kBlocks; ++block) fill(slabs, i, block, 7);
  }
  EXPECT_EQ(resident_bytes(slabs.slab(0), 16 * kMiB), 16 * kMiB);
  slabs.resize(0, kBlocks / 4);
  EXPECT_EQ(resident_bytes(slabs.slab(0), 16 * kMiB), 4 * kMiB);
  EXPECT_EQ(resident_bytes(slabs.slab(1), 16 * kMiB), 16 * kMiB);
  EXPECT_THAT(std::span(slabs.block(0, BlockId{kBlocks / 4 - 1}), 1024), testing::Each(std::byte{7}));
  slabs.resize(0, kBlocks);
  fill(slabs, 0, kBlocks - 1, 8);
  EXPECT_THAT(std::span(slabs.block(0, BlockId{kBlocks - 1}), 1024), testing::Each(std::byte{8}));
  EXPECT_THAT(std::span(slabs.block(0, BlockId{0}), 1024), testing::Each(std::byte{7}));
}

}  // namespace
}  // namespace headrace
