#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <span>

namespace headrace::client {

/// An epoll instance whose wait ends at a time and not at a whole millisecond.
class EventWait {
 public:
  EventWait();
  ~EventWait();
  EventWait(const EventWait&) = delete;
  EventWait& operator=(const EventWait&) = delete;

  /// Events as in epoll(7); 0: none any more.
  void watch(int fd, uint32_t events, bool is_known);
  /// What is ready, at most all of `ready`; none at the deadline or at a signal.
  [[nodiscard]] std::span<epoll_event> wait(std::chrono::steady_clock::time_point deadline,
                                            std::span<epoll_event> ready);

 private:
  int fd_;
};

}  // namespace headrace::client
