#include "backend/cpu/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"

namespace headrace {
namespace {

TEST(HostMemory, IsZeroedAlignedAndWritable) {
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{4097}, (int64_t{1} << 20) - 1,
                              int64_t{1} << 20, (int64_t{3} << 20) + 5}) {
    for (int again = 0; again < 2; ++again) {  // the second piece may reuse what the first one wrote
      void* const memory = allocate_host_memory(bytes);
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
      const std::span<std::byte> all(static_cast<std::byte*>(memory), static_cast<size_t>(bytes));
      EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](std::byte b) { return b == std::byte{0}; })) << bytes;
      std::fill(all.begin(), all.end(), std::byte{0xff});
      release_host_memory(memory, bytes);
    }
  }
}

TEST(HostMemory, DiscardingGivesBackTheWholePagesOfAPartAndNoOthers) {
  constexpr size_t kBytes = size_t{16} << 20;
  auto* const memory = static_cast<std::byte*>(allocate_host_memory(kBytes));
  std::fill_n(memory, kBytes, std::byte{7});
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  discard_host_memory(memory + page + 1, kBytes / 2);
  std::vector<unsigned char> resident(kBytes / page);
  ASSERT_EQ(mincore(memory, kBytes, resident.data()), 0);
  const size_t end = (page + 1 + kBytes / 2) / page;
  for (size_t i = 0; i < resident.size(); ++i) EXPECT_EQ(resident[i] & 1, i < 2 || i >= end ? 1 : 0) << i;
  EXPECT_EQ(memory[page], std::byte{7});
  EXPECT_EQ(memory[end * page], std::byte{7});
  memory[3 * page] = std::byte{1};
  discard_host_memory(memory, 10);
  EXPECT_EQ(memory[5], std::byte{7});
  release_host_memory(memory, kBytes);
}

TEST(HostMemory, ExhaustionIsAnErrorThatNamesTheSize) {
  for (const int64_t bytes : {int64_t{1} << 47, int64_t{1} << 60, INT64_MAX}) {
    try {
      release_host_memory(allocate_host_memory(bytes), bytes);
      ADD_FAILURE() << "no error for " << bytes;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kOutOfMemory);
      EXPECT_THAT(e.message(), testing::HasSubstr(std::to_string(bytes)));
    }
  }
}

}  // namespace
}  // namespace headrace
