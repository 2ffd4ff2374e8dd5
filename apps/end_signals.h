#pragma once

#include <pthread.h>
#include <signal.h>

#include <chrono>

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

}  // namespace headrace
