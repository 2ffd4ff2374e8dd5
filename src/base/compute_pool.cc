#include "base/compute_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cmath>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cgroup.h"
#include "base/check.h"
#include "base/error.h"

#if defined(__linux__)
#include <linux/futex.h>
#endif

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

/// Ranges handed out per thread. More bounds what a thread that lost its core holds back (an eighth of the work on two
/// threads); fewer saves trips to the shared counter, about 0.1 us each.
constexpr int64_t kChunksPerThread = 4;
/// Between two operators of a step lie a few microseconds: a worker that spins over them starts at once.
constexpr std::chrono::microseconds kSpin{20};
/// Then it offers its core to others, as a wake-up from sleep costs some 50 us, and sleeps at last.
constexpr std::chrono::microseconds kYield{200};
/// Looks at the clock once in so many turns: reading it costs as much as a pause.
constexpr int kPausesPerLook = 32;

void cpu_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins, then yields; false once `ready` stayed false through both.
template <class Ready>
bool spin_until(const Ready& ready) noexcept {
  const Clock::time_point start = Clock::now();
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (ready()) return true;
      cpu_pause();
    }
  } while (Clock::now() - start < kSpin);
  do {
    if (ready()) return true;
    sched_yield();
  } while (Clock::now() - start < kSpin + kYield);
  return ready();
}

void futex_sleep(std::atomic<uint32_t>& word, uint32_t while_equal) noexcept {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, while_equal, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int sleepers) noexcept {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);

/// CPUs in the affinity mask; the mask's size is the kernel's and found by trying.
int affinity_cpus() noexcept {
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* const set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    const bool fits = sched_getaffinity(0, bytes, set) == 0;
    const int count = fits ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (fits) return count;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int usable_cpus() noexcept {
  int cpus = affinity_cpus();
  try {
    if (const std::optional<double> limit = cgroup_cpu_limit()) {
      cpus = static_cast<int>(std::min<double>(cpus, std::ceil(*limit)));
    }
  } catch (...) {  // NOLINT: out of memory while reading /proc; the mask alone is a fair answer
  }
  return std::max(cpus, 1);
}

/// One job at a time is open. A worker that sees a new epoch enters through the gate, takes ranges until none is left,
/// and leaves; the caller does the same, then shuts the gate and waits for those inside. A worker that comes too late,
/// because it slept or had no core, finds the gate shut: nobody waits for it.
class ComputePool::Team {
 public:
  explicit Team(int threads) : threads_(threads) {
    // Signals are for the program's own threads: a worker that took Ctrl-C would delay its step.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error& e) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      stop();
      throw Error(ErrorCode::kUnavailable, cat("compute pool: the system gave ", workers_.size() + 1, " of ", threads,
                                               " threads (", e.what(), "); use --threads"));
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Team() { stop(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int threads() const noexcept { return threads_; }

  void run(int64_t items, int64_t grain, RangeFn fn, void* context) noexcept {
    const Turn turn(*this);
    const int64_t per_chunk = (items - 1) / (threads_ * kChunksPerThread) + 1;
    const int64_t chunk = ((per_chunk - 1) / grain + 1) * grain;
    job_ = {.fn = fn, .context = context, .items = items, .chunk = chunk};
    next_.store(0, std::memory_order_relaxed);
    gate_.store(0, std::memory_order_release);
    announce(static_cast<int>(std::min<int64_t>((items - 1) / chunk, threads_ - 1)));
    take_ranges();
    gate_.fetch_or(kShut, std::memory_order_acq_rel);
    wait_for_those_inside();
  }

 private:
  /// Callers take turns in the order in which they came: who has one operator after the other to run does not keep
  /// out who has just one.
  class Turn {
   public:
    explicit Turn(Team& team) noexcept : team_(team) {
      const uint32_t mine = team.tickets_.fetch_add(1, std::memory_order_relaxed);
      for (uint32_t now = team.turn_.load(std::memory_order_acquire); now != mine;
           now = team.turn_.load(std::memory_order_acquire)) {
        team.turn_.wait(now, std::memory_order_acquire);
      }
    }
    ~Turn() {
      team_.turn_.fetch_add(1, std::memory_order_release);
      team_.turn_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Team& team_;
  };
  struct Job {
    RangeFn fn = nullptr;
    void* context = nullptr;
    int64_t items = 0;
    int64_t chunk = 1;
  };
  // gate_: workers inside, and these flags.
  static constexpr uint32_t kShut = 1u << 31;
  static constexpr uint32_t kCallerSleeps = 1u << 30;

  /// Sleepers are counted before they look at the epoch for the last time, and the epoch rises before their count is
  /// read (both sequentially consistent): either the worker sees the new epoch or it is woken.
  void announce(int wanted) noexcept {
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake(epoch_, wanted);
  }

  void take_ranges() noexcept {
    const Job job = job_;
    while (true) {
      const int64_t begin = next_.fetch_add(job.chunk, std::memory_order_relaxed);
      if (begin >= job.items) return;
      job.fn(job.context, begin, std::min(begin + job.chunk, job.items));
    }
  }

  bool enter() noexcept {
    uint32_t inside = gate_.load(std::memory_order_relaxed);
    while ((inside & kShut) == 0) {
      if (gate_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  void leave() noexcept {
    const uint32_t before = gate_.fetch_sub(1, std::memory_order_release);
    if (before == (kShut | kCallerSleeps | 1u)) futex_wake(gate_, 1);
  }

  void wait_for_those_inside() noexcept {
    const auto none_inside = [this] { return (gate_.load(std::memory_order_acquire) & ~kCallerSleeps) == kShut; };
    if (spin_until(none_inside)) return;
    gate_.fetch_or(kCallerSleeps, std::memory_order_acq_rel);
    while (!none_inside()) {
      const uint32_t seen = gate_.load(std::memory_order_acquire);
      if ((seen & ~kCallerSleeps) != kShut) futex_sleep(gate_, seen);
    }
    gate_.store(kShut, std::memory_order_relaxed);
  }

  void work() noexcept {
    pthread_setname_np(pthread_self(), "hr-compute");
    uint32_t seen = 0;
    while (true) {
      const auto announced = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
      while (!spin_until(announced)) {
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        if (epoch_.load(std::memory_order_seq_cst) == seen) futex_sleep(epoch_, seen);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
      }
      seen = epoch_.load(std::memory_order_acquire);
      if (stopping_.load(std::memory_order_acquire)) return;
      if (!enter()) continue;
      take_ranges();
      leave();
    }
  }

  void stop() noexcept {
    stopping_.store(true, std::memory_order_release);
    announce(INT_MAX);
    for (std::thread& worker : workers_) worker.join();
  }

  const int threads_;
  std::atomic<uint32_t> tickets_{0}, turn_{0};
  Job job_;  // written by the caller while the gate is shut and nobody inside
  std::atomic<bool> stopping_{false};
  // Apart, since each changes at its own pace: a claim of a range must not disturb those who watch the epoch.
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<int32_t> sleepers_{0};
  alignas(64) std::atomic<uint32_t> gate_{kShut};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::vector<std::thread> workers_;
};

ComputePool::ComputePool(int threads) {
  HR_CHECK(threads >= 1, "threads ", threads);
  team_ = std::make_unique<Team>(threads);
}
ComputePool::~ComputePool() = default;

int ComputePool::threads() const noexcept { return team_->threads(); }

void ComputePool::parallel_for(int64_t items, int64_t grain, RangeFn fn, void* context) noexcept {
  HR_DCHECK(grain >= 1, "grain ", grain);
  if (items <= 0) return;
  if (items <= grain || team_->threads() == 1) {
    fn(context, 0, items);
    return;
  }
  team_->run(items, grain, fn, context);
}

}  // namespace headrace
