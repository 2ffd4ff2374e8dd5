#include "api/event_queue.h"

namespace headrace {

EventSink EventQueue::sink() {
  return [this](GenerationEvent&& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    arrived_.notify_one();  // under the lock: the waiter may destroy the queue once it has the last event
  };
}

GenerationEvent EventQueue::pop() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return !events_.empty(); });
  GenerationEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

std::optional<GenerationEvent> EventQueue::pop_for(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  if (!arrived_.wait_for(lock, limit, [this] { return !events_.empty(); })) return std::nullopt;
  GenerationEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

}  // namespace headrace
