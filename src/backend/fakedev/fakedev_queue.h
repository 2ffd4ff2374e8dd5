#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "backend/backend.h"
#include "backend/fakedev/device_memory.h"

namespace headrace {

/// Runs what it is given on a thread of its own, in order. The destructor lets the thread finish what was enqueued.
class FakedevQueue final : public Queue {
 public:
  explicit FakedevQueue(const DeviceMemory& memory);
  ~FakedevQueue() override;
  FakedevQueue(const FakedevQueue&) = delete;
  FakedevQueue& operator=(const FakedevQueue&) = delete;

  void synchronize() noexcept override;
  void enqueue(std::function<void()> task) noexcept;
  [[nodiscard]] const DeviceMemory& memory() const noexcept { return memory_; }

 private:
  void work() noexcept;

  const DeviceMemory& memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace headrace
