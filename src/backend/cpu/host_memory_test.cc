#include "backend/cpu/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>

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
