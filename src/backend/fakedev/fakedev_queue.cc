#include "backend/fakedev/fakedev_queue.h"

#include <utility>

namespace headrace {

FakedevQueue::FakedevQueue(const DeviceMemory& memory) : memory_(memory), thread_([this] { work(); }) {}

FakedevQueue::~FakedevQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FakedevQueue::synchronize() noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
}

void FakedevQueue::enqueue(std::function<void()> task) noexcept {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void FakedevQueue::work() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    task();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace headrace
