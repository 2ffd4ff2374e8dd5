#pragma once

#include <time.h>

#include <chrono>

#include "cluster/stage_times.h"

namespace headrace::cluster {

/// Time and this thread's CPU time since it was made.
class StopWatch {
 public:
  [[nodiscard]] double seconds() const noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  /// As a stage's computing.
  [[nodiscard]] StageTimes times() const noexcept {
    return {.compute = seconds(), .cpu = thread_seconds() - cpu_begin_};
  }

 private:
  static double thread_seconds() noexcept {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double cpu_begin_ = thread_seconds();
};

}  // namespace headrace::cluster
