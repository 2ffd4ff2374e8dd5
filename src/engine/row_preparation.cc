#include "engine/row_preparation.h"

namespace headrace {

RowPreparation::~RowPreparation() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void RowPreparation::add(SamplingState& state) {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&state);
    ++unfinished_;
  }
  work_.notify_one();
}

void RowPreparation::wait() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return unfinished_ == 0; });
}

void RowPreparation::run() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    SamplingState* state = waiting_.back();
    waiting_.pop_back();
    lock.unlock();
    state->prepare();
    lock.lock();
    if (--unfinished_ == 0) done_.notify_one();
  }
}

}  // namespace headrace
