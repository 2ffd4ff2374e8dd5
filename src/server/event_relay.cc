#include "server/event_relay.h"

namespace headrace::server {

EventRelay::EventRelay(std::function<void(std::function<void()>)> post) : post_(std::move(post)) {}

EventSink EventRelay::sink(std::shared_ptr<EventReceiver> receiver, size_t request) {
  return [this, receiver = std::move(receiver), request](GenerationEvent&& event) mutable {
    bool wake = false;
    {
      const std::scoped_lock lock(mutex_);
      const bool last = event.last;
      arrived_.push_back({last ? std::move(receiver) : receiver, request, std::move(event)});
      wake = !std::exchange(posted_, true);
    }
    if (wake) post_([this] { deliver(); });
  };
}

void EventRelay::deliver() {
  std::vector<Arrived> batch;
  {
    const std::scoped_lock lock(mutex_);
    batch.swap(arrived_);
  }
  for (Arrived& arrived : batch) arrived.receiver->on_event(arrived.request, std::move(arrived.event));
  bool more = false;
  {
    const std::scoped_lock lock(mutex_);
    more = !arrived_.empty();
    posted_ = more;
  }
  // Not a loop: other work of the I/O thread comes between.
  if (more) post_([this] { deliver(); });
}

}  // namespace headrace::server
