#include "backend/cpu/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace headrace {
namespace {

TEST(HostMemory, IsZeroedAlignedAndWritable) {
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{4097}, (int64_t{64} << 10) - 1,
                              int64_t{64} << 10, (int64_t{3} << 20) + 5, int64_t{32} << 20, (int64_t{32} << 20) + 1}) {
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

/// What a file of /proc says of this process, in KiB; 0 where it has no such line.
int64_t kib_of(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string word; in >> word;) {
    int64_t kib = 0;
    if (word == name && in >> kib) return kib;
  }
  return 0;
}

TEST(HostMemory, MatricesLieInHugePagesUpToTheirEdges) {
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::string enabled{std::istreambuf_iterator<char>(setting), {}};
  if (enabled.empty() || enabled.find("[never]") != std::string::npos) {
    GTEST_SKIP() << "this machine has no transparent huge pages";
  }
  const int64_t before = kib_of("/proc/self/smaps_rollup", "AnonHugePages:");
  constexpr int64_t kBytes = (int64_t{1} << 20) + (int64_t{300} << 10);
  std::vector<void*> matrices;
  for (int i = 0; i < 40; ++i) {
    matrices.push_back(allocate_host_memory(kBytes));
    std::memset(matrices.back(), 1, kBytes);
  }
  EXPECT_GE(kib_of("/proc/self/smaps_rollup", "AnonHugePages:") - before, 40 * kBytes / 1024 * 95 / 100);
  for (void* matrix : matrices) release_host_memory(matrix, kBytes);
}

/// Of layers' caches in mappings of their own, all; of those in chunks, two and two at most.
TEST(HostMemory, LargePiecesBeginAtDifferentPlacesOfAHugePage) {
  for (const int64_t bytes : {int64_t{24} << 20, int64_t{48} << 20}) {
    std::vector<void*> caches;
    std::set<uintptr_t> places;
    for (int i = 0; i < 30; ++i) {
      caches.push_back(allocate_host_memory(bytes));
      places.insert(reinterpret_cast<uintptr_t>(caches.back()) % (uintptr_t{2} << 20));
    }
    EXPECT_GE(places.size(), bytes > (int64_t{32} << 20) ? 30u : 15u) << bytes;
    for (void* cache : caches) release_host_memory(cache, bytes);
  }
}

TEST(HostMemory, APieceGivenBackCostsNothingAndItsPlaceIsUsedAgain) {
  constexpr int64_t kBytes = int64_t{20} << 20;
  std::vector<void*> pieces;
  for (int i = 0; i < 6; ++i) {
    pieces.push_back(allocate_host_memory(kBytes));
    std::memset(pieces.back(), 1, kBytes);
  }
  const int64_t full = kib_of("/proc/self/status", "VmRSS:");
  release_host_memory(pieces[1], kBytes);
  EXPECT_LT(kib_of("/proc/self/status", "VmRSS:"), full - kBytes / 1024 / 2);
  EXPECT_EQ(allocate_host_memory(kBytes / 2), pieces[1]);
  release_host_memory(pieces[1], kBytes / 2);
  for (const int i : {0, 2, 3, 4, 5}) release_host_memory(pieces[static_cast<size_t>(i)], kBytes);
  EXPECT_LT(kib_of("/proc/self/status", "VmRSS:"), full - 5 * kBytes / 1024);
}

TEST(HostMemory, ThreadsTakeAndGiveBackSideBySide) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int64_t i = 0; i < 200; ++i) {
        const int64_t bytes = (int64_t{64} << 10) + i * 5000;
        auto* const piece = static_cast<unsigned char*>(allocate_host_memory(bytes));
        EXPECT_EQ(piece[0] + piece[bytes - 1], 0);
        piece[0] = piece[bytes - 1] = static_cast<unsigned char>(t + 1);
        std::this_thread::yield();
        EXPECT_EQ(piece[0] + piece[bytes - 1], 2 * (t + 1));
        release_host_memory(piece, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
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
