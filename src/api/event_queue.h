#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "headrace/generation.h"

namespace headrace {

/// Hands a request's events from the engine's thread to one that waits for them. Must outlive the request's last event.
class EventQueue {
 public:
  [[nodiscard]] EventSink sink();
  /// Waits for the next event.
  [[nodiscard]] GenerationEvent pop();
  /// The next event; nullopt where none comes in time.
  [[nodiscard]] std::optional<GenerationEvent> pop_for(std::chrono::milliseconds limit);

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<GenerationEvent> events_;
};

}  // namespace headrace
