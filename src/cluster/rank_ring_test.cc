#include "cluster/rank_ring.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>

#include "backend/cpu/cpu_backend.h"
#include "backend/fakedev/fakedev_backend.h"
#include "cluster/ring_comm.h"
#include "cluster/test_ranks.h"

namespace headrace::cluster {
namespace {

/// A limit that is over soon, for ranks that keep others waiting for ever.
constexpr double kShortSeconds = 0.1;

struct Setup {
  RankTransport transport;
  int32_t ranks;
};
constexpr Setup kSetups[]{{RankTransport::kSharedMemory, 2},
                          {RankTransport::kSharedMemory, 3},
                          {RankTransport::kTcp, 2},
                          {RankTransport::kTcp, 3}};

class Ring : public testing::TestWithParam<Setup> {
 protected:
  [[nodiscard]] std::vector<RankRing> rings(double limit_seconds = 60) const {
    return connected_rings(GetParam().ranks, GetParam().transport, limit_seconds);
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, Ring, testing::ValuesIn(kSetups), [](const auto& setup) {
  return cat(setup.param.transport == RankTransport::kTcp ? "tcp" : "shm", setup.param.ranks);
});

std::byte pattern(int32_t rank, size_t i) {
  return static_cast<std::byte>(i * 31 + i / 256 * 7 + static_cast<size_t>(rank) * 101);
}
std::vector<std::byte> pattern_of(int32_t rank, size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = pattern(rank, i);
  return bytes;
}

TEST_P(Ring, BlocksOfAnySizeReachAllRanksOrTheFirst) {
  std::vector<RankRing> all = rings();
  // The last is more than sockets and shared memory hold, so that ranks must read while they write.
  const std::vector<size_t> sizes{0, 1, 3, 4097, (size_t{5} << 20) + 13};
  on_all_ranks(all, [&](RankRing& ring) {
    const auto [rank, ranks] = ring.place();
    for (const size_t size : sizes) {
      for (const bool to_first : {false, true}) {
        std::vector<std::vector<std::byte>> own;
        std::vector<std::span<std::byte>> blocks;
        for (int32_t r = 0; r < ranks; ++r) own.emplace_back(size + static_cast<size_t>(r) % 2);
        own[static_cast<size_t>(rank)] = pattern_of(rank, own[static_cast<size_t>(rank)].size());
        for (auto& block : own) blocks.emplace_back(block);
        ring.gather(blocks, to_first);
        ASSERT_FALSE(ring.fault()) << ring.fault()->message();
        if (to_first && rank != 0) continue;
        for (int32_t r = 0; r < ranks; ++r) {
          const auto& block = own[static_cast<size_t>(r)];
          EXPECT_TRUE(block == pattern_of(r, block.size())) << "rank " << rank << ", block " << r << " of " << size;
        }
      }
      std::vector<std::byte> shared = rank == 0 ? pattern_of(7, size) : std::vector<std::byte>(size);
      ring.broadcast(shared);
      EXPECT_TRUE(shared == pattern_of(7, size)) << rank;
    }
    EXPECT_FALSE(ring.fault());
  });
}

TEST_P(Ring, OrdersComeInTheirOrder) {
  std::vector<RankRing> all = rings();
  on_all_ranks(all, [&](RankRing& ring) {
    std::vector<std::byte> order;
    for (const size_t size : {size_t{1}, size_t{300}, size_t{3} << 20, size_t{2}}) {
      if (ring.place().rank == 0) {
        ring.give_order(pattern_of(1, size));
      } else {
        ASSERT_TRUE(ring.take_order(order, size_t{3} << 20));
        EXPECT_TRUE(order == pattern_of(1, size)) << size;
      }
    }
  });
}

TEST_P(Ring, ARankThatIsGoneEndsWhatOthersDo) {
  std::vector<RankRing> all = rings();
  std::vector<RankRing> last;
  last.push_back(std::move(all.back()));
  all.pop_back();
  std::atomic<int> waiting = 0;
  std::jthread leaves([&] {
    while (waiting < GetParam().ranks - 1) std::this_thread::yield();
    last.clear();
  });
  on_all_ranks(all, [&](RankRing& ring) {
    ++waiting;
    std::vector<std::byte> in(8);
    if (ring.place().rank == 0) {
      ring.exchange(in, in);
      ASSERT_TRUE(ring.fault());
      EXPECT_EQ(ring.fault()->code(), ErrorCode::kUnavailable);
      EXPECT_NE(ring.fault()->message().find(cat("rank ", GetParam().ranks - 1, " of ", GetParam().ranks, " is gone")),
                std::string::npos)
          << ring.fault()->message();
      ring.exchange(in, in);  // does nothing
    } else {
      std::vector<std::byte> order;
      while (ring.take_order(order, 100)) {
      }
      EXPECT_TRUE(ring.fault());
    }
  });
}

TEST_P(Ring, AnIdleRankEndsWithTheFirst) {
  std::vector<RankRing> all = rings(kShortSeconds);
  std::vector<RankRing> others(std::make_move_iterator(all.begin() + 1), std::make_move_iterator(all.end()));
  std::jthread leaves([&] {
    // Idle for longer than a rank may keep others waiting within a step.
    std::this_thread::sleep_for(std::chrono::duration<double>(2 * kShortSeconds));
    all.clear();
  });
  on_all_ranks(others, [&](RankRing& ring) {
    std::vector<std::byte> order;
    EXPECT_FALSE(ring.take_order(order, 100));
    ASSERT_TRUE(ring.fault());
    EXPECT_EQ(ring.fault()->code(), ErrorCode::kUnavailable) << ring.fault()->message();
  });
}

TEST_P(Ring, WaitsHaveALimit) {
  std::vector<RankRing> all = rings(kShortSeconds);
  std::vector<std::byte> in(8);
  for (const RankRing& ring : all) EXPECT_FALSE(ring.is_broken());
  all[0].exchange({}, in);
  EXPECT_TRUE(all[0].is_broken());
  EXPECT_TRUE(all[1].is_broken());
  ASSERT_TRUE(all[0].fault());
  EXPECT_EQ(all[0].fault()->code(), ErrorCode::kTimeout);
  EXPECT_EQ(all[0].fault()->message(),
            cat("rank ", GetParam().ranks - 1, " of ", GetParam().ranks, " sent nothing for 0.1 s"));

  all = rings(kShortSeconds);
  all[0].exchange(pattern_of(0, size_t{64} << 20), {});
  ASSERT_TRUE(all[0].fault());
  EXPECT_EQ(all[0].fault()->message(), cat("rank 1 of ", GetParam().ranks, " took nothing for 0.1 s"));
  // The neighbour learns that there will be no more.
  all[1].exchange({}, in);
  EXPECT_EQ(all[1].fault()->code(), ErrorCode::kCorrupt) << "what came is not what was waited for";
}

TEST_P(Ring, RanksThatLoseStepAreFound) {
  std::vector<RankRing> all = rings();
  std::vector<std::byte> bytes(9);
  all[0].exchange(std::span(bytes).first(8), {});
  all[1].exchange({}, bytes);
  ASSERT_TRUE(all[1].fault());
  EXPECT_EQ(all[1].fault()->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(all[1].fault()->message(),
            cat("rank 0 of ", GetParam().ranks, " sent message 0 of 8 bytes, expected message 0 of 9"));

  all = rings();
  std::vector<std::byte> order;
  all[0].give_order(bytes);
  EXPECT_FALSE(all[1].take_order(order, 8));
  EXPECT_NE(all[1].fault()->message().find("expected message 0 of up to 8"), std::string::npos);
}

TEST(RankRing, BytesOfAStrangerAreNoMessage) {
  std::vector<RankDescriptors> links = make_rank_links(2, RankTransport::kTcp);
  const std::vector<std::byte> noise = pattern_of(3, 64);
  ASSERT_EQ(::send(links[1].to_next.get(), noise.data(), noise.size(), 0), 64);
  RankRing ring = open_rank_ring({0, 2}, std::move(links[0]), 60);
  std::vector<std::byte> in(48);
  ring.exchange({}, in);
  ASSERT_TRUE(ring.fault());
  EXPECT_EQ(ring.fault()->code(), ErrorCode::kCorrupt);
  EXPECT_NE(ring.fault()->message().find("without the magic number"), std::string::npos);
}

/// Rows of which each rank has its columns, on a device.
void expect_rows(RankRing& ring, Backend& backend, int64_t rows, int64_t width, int64_t unit) {
  RingComm comm(backend, ring);
  const std::unique_ptr<Queue> queue = backend.make_queue();
  const auto [rank, ranks] = ring.place();
  const ShardRange columns = split_evenly(width, unit, rank, ranks);
  const auto value = [&](int64_t row, int64_t column) { return static_cast<float>(row * 1000 + column); };
  std::vector<float> part, want;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      want.push_back(value(row, column));
      if (column >= columns.begin && column < columns.end) part.push_back(value(row, column));
    }
  }
  const auto bytes_of = [](const std::vector<float>& values) {
    return static_cast<int64_t>(values.size() * sizeof(float));
  };
  const DeviceBuffer part_there(backend, bytes_of(part));
  const DeviceBuffer whole_there(backend, bytes_of(want));
  const auto whole = [&] {
    std::vector<float> values(want.size());
    backend.download(*queue, values.data(), whole_there.data(), whole_there.bytes());
    queue->synchronize();
    return values;
  };
  backend.upload(*queue, part_there.data(), part.data(), bytes_of(part));
  const DividedRows divided{
      .part = part_there.as<float>(), .whole = whole_there.as<float>(), .rows = rows, .width = width, .unit = unit};
  comm.gather(*queue, divided);
  EXPECT_EQ(whole(), rank == 0 ? want : std::vector<float>(want.size())) << rank << ": " << rows << " x " << width;
  comm.broadcast(*queue, whole_there.as<float>(), rows * width);
  EXPECT_EQ(whole(), want) << "broadcast";
  const std::vector<float> zeros(want.size());
  backend.upload(*queue, whole_there.data(), zeros.data(), bytes_of(zeros));
  comm.all_gather(*queue, divided);
  EXPECT_EQ(whole(), want) << rank << ": " << rows << " x " << width << " by " << unit;
  EXPECT_FALSE(comm.fault());
}

TEST_P(Ring, ColumnsOfRowsOnADevice) {
  for (const bool fakedev : {false, true}) {
    std::vector<RankRing> all = rings();
    on_all_ranks(all, [&](RankRing& ring) {
      ComputePool pool(1);
      const std::unique_ptr<Backend> backend =
          fakedev ? make_fakedev_backend(int64_t{1} << 22) : make_cpu_backend(pool, Isa::kRef);
      for (const int64_t rows : {1, 5}) {
        expect_rows(ring, *backend, rows, 7, 1);
        expect_rows(ring, *backend, rows, 3 * 48, 48);
        expect_rows(ring, *backend, rows, 544 + 3, 16);
      }
    });
  }
}

}  // namespace
}  // namespace headrace::cluster
