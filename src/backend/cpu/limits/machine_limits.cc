#include "backend/cpu/limits/machine_limits.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "backend/cpu/host_memory.h"
#include "backend/cpu/limits/limit_kernels.h"

namespace headrace {
namespace {

constexpr int kRuns = 7;
constexpr double kGiga = 1e9, kTera = 1e12;
constexpr int64_t kReadUnit = 512 * 64;  // a piece of a buffer is a multiple of it: see ReadFn

/// Each of the pool's threads runs body(index) once; seconds from the first start to the last end.
template <class Body>
double run_on_all(ComputePool& pool, const Body& body) {
  const auto begin = std::chrono::steady_clock::now();
  pool.parallel_for(
      pool.threads(), 1,
      [](void* context, int64_t first, int64_t end) noexcept {
        for (int64_t i = first; i < end; ++i) (*static_cast<const Body*>(context))(i);
      },
      const_cast<Body*>(&body));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The median and spread of amount / seconds of each run, after one that is not counted.
template <class Body>
MachineLimit measure(std::string name, std::string unit, int threads, double amount, const Body& seconds_of_run) {
  std::array<double, kRuns> rates{};
  (void)seconds_of_run();
  for (double& rate : rates) rate = amount / seconds_of_run();
  std::ranges::sort(rates);
  const double median = rates[kRuns / 2];
  return {std::move(name), std::move(unit), threads, median, (rates.back() - rates.front()) / median};
}

class Buffer {
 public:
  /// Written once, by the threads that will read it, so that each page is real and near.
  Buffer(ComputePool& pool, int64_t bytes, bool huge_pages)
      : part_(bytes / pool.threads() / kReadUnit * kReadUnit),
        bytes_(part_ * pool.threads()),
        data_(static_cast<std::byte*>(allocate_host_memory(bytes_))) {
    if (!huge_pages) (void)madvise(data_, static_cast<size_t>(bytes_), MADV_NOHUGEPAGE);
    run_on_all(pool, [this](int64_t i) { std::fill_n(data_ + i * part_, part_, std::byte{1}); });
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release_host_memory(data_, bytes_); }
  [[nodiscard]] const std::byte* part(int64_t i) const noexcept { return data_ + i * part_; }
  [[nodiscard]] int64_t part_bytes() const noexcept { return part_; }
  [[nodiscard]] int64_t bytes() const noexcept { return bytes_; }

 private:
  int64_t part_, bytes_;
  std::byte* data_;
};

/// Reads `bytes` in all, `passes` times over.
MachineLimit measure_read(ComputePool& pool, Isa isa, std::string name, int64_t bytes, int64_t passes,
                          bool huge_pages) {
  const Buffer buffer(pool, std::max(bytes, kReadUnit * pool.threads()), huge_pages);
  const ReadFn read = read_kernel(isa);
  std::atomic<uint64_t> sum = 0;
  return measure(std::move(name), "GB/s", pool.threads(), static_cast<double>(buffer.bytes() * passes) / kGiga, [&] {
    return run_on_all(pool, [&](int64_t i) {
      for (int64_t pass = 0; pass < passes; ++pass) sum += read(buffer.part(i), buffer.part_bytes());
    });
  });
}

MachineLimit measure_peak(ComputePool& pool, const PeakKernel& kernel) {
  // Rounds for about 5 ms, by a first guess of a cycle an instruction.
  constexpr int64_t kRounds = 400'000;
  const double ops = kernel.ops_per_round * kRounds * pool.threads();
  return measure(std::string(kernel.name), "Top/s", pool.threads(), ops / kTera,
                 [&] { return run_on_all(pool, [&](int64_t) { kernel.run(kRounds); }); });
}

/// The time of a parallel_for in which every thread waits for every other.
MachineLimit measure_meeting(ComputePool& pool) {
  constexpr int kMeetings = 1000;
  MachineLimit limit = measure("all threads start, meet and join", "us", pool.threads(), kMeetings, [&] {
    double seconds = 0;
    for (int i = 0; i < kMeetings; ++i) {
      std::atomic<int> arrived = 0;
      seconds += run_on_all(pool, [&](int64_t) {
        ++arrived;
        while (arrived.load(std::memory_order_relaxed) < pool.threads()) std::this_thread::yield();
      });
    }
    return seconds;
  });
  limit.value = 1e6 / limit.value;
  return limit;
}

/// Bytes of a cache of this processor; 0 where the system does not tell.
int64_t cache_bytes(int name) { return std::max<int64_t>(sysconf(name), 0); }

}  // namespace

std::vector<MachineLimit> measure_machine(ComputePool& pool, Isa isa, int64_t memory_bytes,
                                          const std::function<void(const MachineLimit&)>& on_limit) {
  std::vector<MachineLimit> limits;
  const auto add = [&](MachineLimit limit) {
    limits.push_back(std::move(limit));
    if (on_limit) on_limit(limits.back());
  };
  add(measure_read(pool, isa, "memory read, huge pages", memory_bytes, 1, true));
  add(measure_read(pool, isa, "memory read, 4 KiB pages", memory_bytes, 1, false));
  // A virtual machine may be told of more last-level cache than it gets: at most what findings showed to stay in it.
  constexpr int64_t kMostCache = int64_t{96} << 20, kPassBytes = int64_t{256} << 20;
  if (const int64_t last = std::min(cache_bytes(_SC_LEVEL3_CACHE_SIZE) / 2, kMostCache); last > 0) {
    add(measure_read(pool, isa, "last-level cache read", last, kPassBytes / last + 1, true));
  }
  if (const int64_t second = cache_bytes(_SC_LEVEL2_CACHE_SIZE) / 2 * pool.threads(); second > 0) {
    add(measure_read(pool, isa, "second-level cache read", second, kPassBytes / second + 1, true));
  }
  for (const PeakKernel& kernel : peak_kernels()) {
    if (kernel.isa <= isa) add(measure_peak(pool, kernel));
  }
  if (pool.threads() > 1) add(measure_meeting(pool));
  return limits;
}

}  // namespace headrace
