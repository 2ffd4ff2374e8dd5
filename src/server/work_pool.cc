#include "server/work_pool.h"

#include <pthread.h>

#include <utility>

namespace headrace::server {

WorkPool::WorkPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

WorkPool::~WorkPool() { stop(); }

void WorkPool::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

int64_t WorkPool::open_jobs() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(jobs_) + running_;
}

void WorkPool::stop() {
  {
    std::deque<std::function<void()>> dropped;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(jobs_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkPool::work() {
  pthread_setname_np(pthread_self(), "hr-read");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    ++running_;
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
    --running_;
  }
}

}  // namespace headrace::server
