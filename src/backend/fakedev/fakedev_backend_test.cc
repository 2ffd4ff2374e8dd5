#include "backend/fakedev/fakedev_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <vector>

#include "backend/fakedev/device_memory.h"
#include "backend/fakedev/fakedev_queue.h"
#include "base/error.h"

namespace headrace {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class Fakedev : public testing::Test {
 protected:
  Fakedev() {
    // The queue's thread lives through a death test's fork only when the child starts anew.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  const std::unique_ptr<Backend> backend_ = make_fakedev_backend(kMiB);
  const std::unique_ptr<Queue> queue_ = backend_->make_queue();
};

TEST_F(Fakedev, TouchingADeviceAddressOnTheHostDies) {
  DeviceBuffer buffer(*backend_, 100);
  ASSERT_NE(buffer.data(), nullptr);
  EXPECT_EQ(backend_->host_view(buffer.data()), nullptr);
  EXPECT_DEATH({ *static_cast<volatile std::byte*>(buffer.data()) = std::byte{1}; }, "");
  EXPECT_DEATH({ (void)*static_cast<volatile std::byte*>(buffer.data()); }, "");
}

TEST_F(Fakedev, AHostAddressInAnOperatorDies) {
  DeviceBuffer x(*backend_, 400);
  std::vector<float> host(100);
  const AddArgs args{.a = x.as<float>(), .b = host.data(), .y = x.as<float>(), .rows = 1, .dim = 100};
  EXPECT_DEATH(backend_->ops().add(*queue_, args), "host address");
}

TEST_F(Fakedev, RunningPastAPieceDies) {
  DeviceBuffer x(*backend_, 400);
  EXPECT_DEATH(
      {
        // 448 bytes belong to the piece, with its alignment; the 113th float is on the page behind it.
        backend_->ops().add(*queue_,
                            {.a = x.as<float>(), .b = x.as<float>(), .y = x.as<float>(), .rows = 1, .dim = 113});
        queue_->synchronize();
      },
      "");
}

TEST_F(Fakedev, UsingAReleasedPieceDies) {
  DeviceBuffer x(*backend_, 400);
  const float* const stale = DeviceBuffer(*backend_, 400).as<float>();
  EXPECT_DEATH(
      {
        backend_->ops().add(*queue_, {.a = stale, .b = x.as<float>(), .y = x.as<float>(), .rows = 1, .dim = 100});
        queue_->synchronize();
      },
      "");
}

TEST_F(Fakedev, WorkRunsInOrderAndTheArgumentsAreCopied) {
  std::vector<float> host(1000, 1.0f);
  DeviceBuffer x(*backend_, 4000);
  backend_->upload(*queue_, x.data(), host.data(), 4000);
  for (int i = 0; i < 10; ++i) {
    AddArgs args{.a = x.as<float>(), .b = x.as<float>(), .y = x.as<float>(), .rows = 10, .dim = 100};
    backend_->ops().add(*queue_, args);
    args = {};
  }
  std::vector<float> out(1000);
  backend_->download(*queue_, out.data(), x.data(), 4000);
  queue_->synchronize();
  EXPECT_THAT(out, testing::Each(1024.0f));
}

TEST_F(Fakedev, CopiesOnTheDeviceInOrderAndSpoilsWhatIsDiscarded) {
  const std::vector<float> host{1, 2, 3, 4};
  DeviceBuffer x(*backend_, 16);
  backend_->upload(*queue_, x.data(), host.data(), 16);
  backend_->copy(*queue_, x.data() + 8, x.data(), 4);
  backend_->copy(*queue_, x.data() + 12, x.data() + 8, 4);
  std::vector<float> out(4);
  backend_->download(*queue_, out.data(), x.data(), 16);
  queue_->synchronize();
  EXPECT_THAT(out, testing::ElementsAre(1, 2, 1, 1));
  backend_->discard(x.data() + 4, 4);
  backend_->download(*queue_, out.data(), x.data(), 16);
  queue_->synchronize();
  EXPECT_THAT(out, testing::ElementsAre(1, testing::IsNan(), 1, 1));
  EXPECT_DEATH(backend_->copy(*queue_, x.data(), out.data(), 4), "host address");
}

TEST(FakedevQueue, IsAsynchronousAndFinishesItsWorkBeforeItEnds) {
  const DeviceMemory memory(kMiB);
  std::promise<void> go;
  int done = 0;
  {
    FakedevQueue queue(memory);
    queue.enqueue([&] { go.get_future().wait(); });  // enqueue returns although this cannot have run
    queue.enqueue([&] { ++done; });
    go.set_value();
    queue.synchronize();
    EXPECT_EQ(done, 1);
    queue.enqueue([&] { ++done; });
  }
  EXPECT_EQ(done, 2);
}

TEST(DeviceMemory, PiecesAreZeroedAlignedAndApart) {
  DeviceMemory memory(kMiB);
  for (int again = 0; again < 2; ++again) {
    std::vector<std::pair<void*, int64_t>> pieces;
    for (const int64_t bytes : {0, 1, 63, 64, 4096, 5000}) {
      void* const device = memory.allocate(bytes);
      pieces.emplace_back(device, bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(device) % 64, 0u);
      auto* const local = static_cast<std::byte*>(memory.local(device));
      EXPECT_TRUE(std::all_of(local, local + bytes, [](std::byte b) { return b == std::byte{0}; })) << bytes;
      std::fill_n(local, bytes, std::byte{0xee});
    }
    for (const auto& [device, bytes] : pieces) memory.release(device, bytes);
  }
}

TEST(DeviceMemory, ExhaustionIsAnErrorAndReleasedRangesJoin) {
  DeviceMemory memory(kMiB);
  std::vector<void*> pieces;
  std::string message;
  try {
    while (true) pieces.push_back(memory.allocate(100000));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfMemory);
    message = e.message();
  }
  EXPECT_THAT(message, testing::HasSubstr("100000 bytes"));
  ASSERT_EQ(pieces.size(), 9u);  // 25 pages and one behind, of 256
  for (const size_t i : {1, 3, 5, 7, 0, 2, 4, 6, 8}) memory.release(pieces[i], 100000);
  memory.release(memory.allocate(kMiB - 4096), kMiB - 4096);
  EXPECT_THROW((void)memory.allocate(kMiB), Error);
  EXPECT_THROW((void)memory.allocate(INT64_MAX), Error);
}

TEST(DeviceMemory, NullStaysNull) {
  DeviceMemory memory(kMiB);
  const float* const none = nullptr;
  EXPECT_EQ(memory.local(none), nullptr);
  memory.release(nullptr, 10);
}

}  // namespace
}  // namespace headrace
