#include "cluster/poll_until.h"

#include <algorithm>
#include <cerrno>

namespace headrace::cluster {

bool poll_until(std::span<pollfd> descriptors, Deadline deadline) noexcept {
  using std::chrono::nanoseconds;
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    const nanoseconds left = deadline > now ? std::chrono::duration_cast<nanoseconds>(deadline - now) : nanoseconds(0);
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    const int ready = ::ppoll(descriptors.data(), descriptors.size(), &timeout, nullptr);
    if (ready > 0) return true;
    if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) return true;  // the call on the socket itself tells what is wrong
  }
}

}  // namespace headrace::cluster
