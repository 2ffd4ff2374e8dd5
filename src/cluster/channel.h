#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace headrace::cluster {

/// Hands values from one thread to another, in order. Threading: every function from any thread.
template <class T>
class Channel {
 public:
  /// Dropped after close().
  void push(T value) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      values_.push_back(std::move(value));
    }
    changed_.notify_one();
  }

  /// Waits for the next value; nullopt once the channel is closed, whatever was left in it.
  [[nodiscard]] std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !values_.empty(); });
    if (closed_) return std::nullopt;
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
  bool closed_ = false;
};

}  // namespace headrace::cluster
