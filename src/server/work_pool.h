#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace headrace::server {

/// Threads for what takes milliseconds (parsing bodies, encoding prompts, compiling grammars), so that the I/O threads
/// go on answering. Jobs begin in the order in which they came. Threading: every function from any thread.
class WorkPool {
 public:
  explicit WorkPool(int threads);
  /// As stop().
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  /// The job must not throw. After stop(), it is destroyed without being run.
  void post(std::function<void()> job);
  /// Jobs that have not ended.
  [[nodiscard]] int64_t open_jobs() const;
  /// Waits for the jobs that have begun; the others are destroyed. Further calls do nothing.
  void stop();

 private:
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> jobs_;
  int64_t running_ = 0;
  bool stopping_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace headrace::server
