#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace headrace {

/// CPUs that this process may use at once: its affinity mask, bounded by the cgroup's CPU quota (v1 and v2, rounded
/// up), at least 1.
[[nodiscard]] int usable_cpus() noexcept;

/// A fixed team of threads for the operators of one step; the caller's thread is the first of them.
/// Idle workers spin a short while, then sleep. Threading: parallel_for from any thread; calls that need the team take
/// turns.
class ComputePool {
 public:
  /// `threads` >= 1; the pool starts threads - 1 of its own.
  explicit ComputePool(int threads);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  [[nodiscard]] int threads() const noexcept;

  /// Calls fn(context, begin, end) so that the calls' ranges tile [0, items), each range a multiple of `grain` items
  /// (but the last), and returns when all have returned. `fn` must not throw. Runs on the caller alone where items <=
  /// grain.
  using RangeFn = void (*)(void* context, int64_t begin, int64_t end) noexcept;
  void parallel_for(int64_t items, int64_t grain, RangeFn fn, void* context) noexcept;

 private:
  class Team;
  std::unique_ptr<Team> team_;
};

}  // namespace headrace
