#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "headrace/generation.h"

namespace headrace::server {

/// Receives events on an I/O thread, one at a time and in their order.
class EventReceiver {
 public:
  EventReceiver() = default;
  EventReceiver(const EventReceiver&) = delete;
  EventReceiver& operator=(const EventReceiver&) = delete;
  virtual ~EventReceiver() = default;
  virtual void on_event(size_t request, GenerationEvent event) noexcept = 0;
};

/// Carries events of all requests from the engine's thread to an I/O thread. Those that arrive together, of one step
/// say, cost one wake-up, and the engine's thread formats and sends nothing.
class EventRelay {
 public:
  /// `post` runs a job on an I/O thread.
  explicit EventRelay(std::function<void(std::function<void()>)> post);
  /// A sink for the request at `request` of the receiver, which is kept until the last event.
  [[nodiscard]] EventSink sink(std::shared_ptr<EventReceiver> receiver, size_t request);

 private:
  struct Arrived {
    std::shared_ptr<EventReceiver> receiver;
    size_t request;
    GenerationEvent event;
  };
  void deliver();

  std::function<void(std::function<void()>)> post_;
  std::mutex mutex_;
  std::vector<Arrived> arrived_;
  bool posted_ = false;  // a deliver() is on its way or at work
};

}  // namespace headrace::server
