#include "apps/end_signals.h"

#include <cstdlib>

namespace headrace {
namespace {

constexpr std::chrono::milliseconds kLookPause{20};

}  // namespace

EndGuard::~EndGuard() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void EndGuard::begin() {
  thread_ = std::thread([this] { watch(); });
}

void EndGuard::watch() {
  std::unique_lock lock(mutex_);
  while (!is_urgent_) {
    if (has_ended_) return;
    lock.unlock();
    if (signals_.wait(kLookPause)) hurry();
    lock.lock();
  }
  if (changed_.wait_for(lock, kGrace, [this] { return has_ended_; })) return;
  std::_Exit(0);  // nothing has to be put away
}

}  // namespace headrace
