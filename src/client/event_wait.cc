#include "client/event_wait.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace headrace::client {

EventWait::EventWait() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (fd_ < 0) throw Error(ErrorCode::kUnavailable, "no epoll instance: too many files are open");
}

EventWait::~EventWait() { ::close(fd_); }

void EventWait::watch(int fd, uint32_t events, bool is_known) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  // A descriptor that was closed has left the set by itself, so failures to take it out mean nothing.
  if (events == 0) {
    ::epoll_ctl(fd_, EPOLL_CTL_DEL, fd, &event);
  } else if (::epoll_ctl(fd_, is_known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0) {
    ::epoll_ctl(fd_, is_known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
  }
}

std::span<epoll_event> EventWait::wait(std::chrono::steady_clock::time_point deadline, std::span<epoll_event> ready) {
  using std::chrono::nanoseconds;
  const auto left = std::chrono::duration_cast<nanoseconds>(deadline - std::chrono::steady_clock::now()).count();
  constexpr int64_t kMillisecond = 1'000'000;
  constexpr int64_t kLongest = 3'600'000;
  auto milliseconds = static_cast<int>(std::clamp<int64_t>(left / kMillisecond, 0, kLongest));
  if (milliseconds == 0 && left > 0) {
    pollfd self{.fd = fd_, .events = POLLIN, .revents = 0};
    const timespec precise{.tv_sec = 0, .tv_nsec = left};
    if (::ppoll(&self, 1, &precise, nullptr) <= 0) return {};
  }
  const int count = ::epoll_wait(fd_, ready.data(), static_cast<int>(ready.size()), milliseconds);
  return ready.first(static_cast<size_t>(std::max(count, 0)));
}

}  // namespace headrace::client
