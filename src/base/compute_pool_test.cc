#include "base/compute_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace headrace {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// parallel_for over any callable.
template <class Body>
void run(ComputePool& pool, int64_t items, int64_t grain, Body body) {
  pool.parallel_for(
      items, grain,
      [](void* context, int64_t begin, int64_t end) noexcept { (*static_cast<Body*>(context))(begin, end); }, &body);
}

TEST(ComputePool, RangesTileTheItemsInMultiplesOfTheGrain) {
  for (const int threads : {1, 2, 3, 5}) {
    ComputePool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t items : {0, 1, 2, 7, 8, 9, 63, 64, 1000, 1021}) {
      for (const int64_t grain : {1, 2, 3, 16, 1000, 4000}) {
        std::mutex mutex;
        std::vector<std::pair<int64_t, int64_t>> ranges;
        run(pool, items, grain, [&](int64_t begin, int64_t end) {
          const std::lock_guard lock(mutex);
          ranges.emplace_back(begin, end);
        });
        std::sort(ranges.begin(), ranges.end());
        int64_t done = 0;
        for (const auto& [begin, end] : ranges) {
          EXPECT_EQ(begin, done);
          EXPECT_LT(begin, end);
          EXPECT_TRUE((end - begin) % grain == 0 || end == items) << begin << " " << end << " grain " << grain;
          done = end;
        }
        EXPECT_EQ(done, items);
      }
    }
  }
}

TEST(ComputePool, TinyWorkStaysWithTheCaller) {
  ComputePool pool(3);
  for (int i = 0; i < 100; ++i) {
    run(pool, 8, 8, [caller = std::this_thread::get_id()](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(end - begin, 8);
    });
  }
}

// The thread that has the first range is held until all other ranges are done: with a static split it would hold its
// whole share, and this would never end.
TEST(ComputePool, OthersTakeTheShareOfADelayedThread) {
  for (const int threads : {2, 3}) {
    ComputePool pool(threads);
    constexpr int64_t kItems = 1000;
    std::atomic<int64_t> done{0};
    run(pool, kItems, 1, [&](int64_t begin, int64_t end) {
      const int64_t mine = end - begin;
      while (begin == 0 && done.load() < kItems - mine) std::this_thread::yield();
      done += mine;
    });
    EXPECT_EQ(done.load(), kItems);
  }
}

// Two ranges that wait for each other need two threads at once.
void rendezvous(ComputePool& pool, microseconds worker_delay = microseconds(0)) {
  std::atomic<int> arrived{0};
  const auto caller = std::this_thread::get_id();
  run(pool, 2, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived.load() < 2) std::this_thread::yield();
    if (worker_delay.count() > 0 && std::this_thread::get_id() != caller) std::this_thread::sleep_for(worker_delay);
  });
}

TEST(ComputePool, WorkersThatSleepAreWoken) {
  ComputePool pool(2);
  for (const int pause_us : {0, 10, 100, 400, 2000, 20000}) {
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(microseconds(pause_us));
      rendezvous(pool);
    }
  }
}

TEST(ComputePool, ACallerThatSleepsIsWoken) {
  ComputePool pool(2);
  for (int i = 0; i < 10; ++i) rendezvous(pool, milliseconds(2));
}

TEST(ComputePool, ResultsOfEveryJobAreVisibleToTheCaller) {
  ComputePool pool(3);
  std::vector<int64_t> values(257);  // plain memory: the thread sanitizer sees any missing order
  for (int64_t job = 1; job <= 2000; ++job) {
    run(pool, std::ssize(values), 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] += job;
    });
    ASSERT_TRUE(std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == job * (job + 1) / 2; })) << job;
  }
}

double process_cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

TEST(ComputePool, CallersTakeTurns) {
  ComputePool pool(2);
  std::atomic<int> inside = 0;
  std::atomic<bool> overlapped = false;
  const auto call_often = [&](int64_t& sum) {
    for (int round = 0; round < 500; ++round) {
      std::atomic<int64_t> items = 0;
      std::atomic<bool> first = true;
      run(pool, 64, 1, [&](int64_t begin, int64_t end) {
        if (first.exchange(false)) overlapped = overlapped || inside.fetch_add(1) > 0;
        items += end - begin;
        if (items == 64) inside = 0;
      });
      sum += items;
    }
  };
  int64_t sums[2] = {0, 0};
  std::thread other([&] { call_often(sums[1]); });
  call_often(sums[0]);
  other.join();
  EXPECT_EQ(sums[0], 500 * 64);
  EXPECT_EQ(sums[1], 500 * 64);
  EXPECT_FALSE(overlapped);
}

TEST(ComputePool, IdleWorkersSleep) {
  ComputePool pool(4);
  rendezvous(pool);
  std::this_thread::sleep_for(milliseconds(20));
  const double before = process_cpu_ms();
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_LT(process_cpu_ms() - before, 60);  // three that spin would take 300 each, or 600 together on two cores
}

// Prints what a job costs; the bound only tells a collapse (a scheduler slice, a sleep in each job) from an answer.
TEST(ComputePool, BarrierCost) {
  ComputePool pool(2);
  const auto median_ns = [](auto job) {
    std::vector<double> times;
    for (int i = 0; i < 5000; ++i) {
      const auto start = steady_clock::now();
      job();
      times.push_back(std::chrono::duration<double, std::nano>(steady_clock::now() - start).count());
    }
    std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
    return times[times.size() / 2];
  };
  const double empty = median_ns([&] { run(pool, 2, 1, [](int64_t, int64_t) {}); });
  const double both = median_ns([&] {
    std::atomic<int> arrived{0};
    run(pool, 2, 1, [&](int64_t, int64_t) {
      ++arrived;
      for (int spins = 0; arrived.load(std::memory_order_relaxed) < 2; ++spins) {
        if (spins > 10000) std::this_thread::yield();  // one core only, or a busy machine
      }
    });
  });
  std::printf("2 threads: empty job %.0f ns, both threads meet inside %.0f ns (medians)\n", empty, both);
  RecordProperty("empty_ns", static_cast<int>(empty));
  RecordProperty("both_ns", static_cast<int>(both));
  EXPECT_LT(empty, 1e6);
}

TEST(UsableCpus, FollowsTheAffinityMask) {
  const int all = usable_cpus();
  ASSERT_GE(all, 1);
  int seen = 0;
  std::thread([&] {
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    seen = usable_cpus();
  }).join();
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace headrace
