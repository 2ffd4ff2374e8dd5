#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace headrace {

/// SIGTERM and SIGINT, kept from all threads made while it lives and waited for by one.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  /// Whether one comes within this time.
  [[nodiscard]] bool wait(std::chrono::milliseconds limit) const {
    const timespec time{.tv_sec = limit.count() / 1000, .tv_nsec = limit.count() % 1000 * 1'000'000};
    return sigtimedwait(&signals_, nullptr, &time) > 0;
  }

 private:
  sigset_t signals_;
};

/// Sees to it that a program that is asked to end does. What it still does then (a step that runs, a process that
/// hangs) may take long, and cannot be interrupted: the program is left as it is. Made before whatever may take long to
/// end.
class EndGuard {
 public:
  /// Between hurry and the end of the program.
  static constexpr std::chrono::seconds kGrace{1};

  explicit EndGuard(const EndSignals& signals) : signals_(signals) {}
  /// The program has ended by itself.
  ~EndGuard();
  EndGuard(const EndGuard&) = delete;
  EndGuard& operator=(const EndGuard&) = delete;

  /// The first signal has come: another one is hurry.
  void begin();
  /// Also without another signal.
  void hurry() noexcept { is_urgent_ = true; }
  [[nodiscard]] bool is_urgent() const noexcept { return is_urgent_; }

 private:
  void watch();

  const EndSignals& signals_;
  std::atomic<bool> is_urgent_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace headrace
