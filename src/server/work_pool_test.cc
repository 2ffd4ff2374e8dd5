#include "server/work_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

namespace headrace::server {
namespace {

TEST(WorkPool, RunsEachJobOnce) {
  std::atomic<int> runs = 0;
  std::promise<void> last;
  WorkPool pool(3);
  for (int i = 0; i < 1000; ++i) {
    pool.post([&] {
      if (++runs == 1000) last.set_value();
    });
  }
  last.get_future().wait();
  EXPECT_EQ(runs, 1000);
}

TEST(WorkPool, CountsWhatHasNotEndedAndDropsWhatHasNotBegun) {
  WorkPool pool(1);
  std::promise<void> begun, go;
  std::atomic<bool> ended = false;
  pool.post([&] {
    begun.set_value();
    go.get_future().wait();
    ended = true;
  });
  begun.get_future().wait();
  const auto kept = std::make_shared<int>(0);
  pool.post([kept, &ended] { ADD_FAILURE() << "this job was not to begin, ended: " << ended; });
  EXPECT_EQ(pool.open_jobs(), 2);
  EXPECT_EQ(kept.use_count(), 2);
  std::thread stopper([&] { pool.stop(); });
  while (kept.use_count() > 1) std::this_thread::yield();
  EXPECT_FALSE(ended);
  go.set_value();
  stopper.join();
  EXPECT_TRUE(ended);
  pool.post([&] { ended = false; });
  pool.stop();
  EXPECT_TRUE(ended);
  EXPECT_EQ(pool.open_jobs(), 0);
}

}  // namespace
}  // namespace headrace::server
