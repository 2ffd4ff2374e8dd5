#pragma once

#include <poll.h>

#include <span>

#include "cluster/link.h"

namespace headrace::cluster {

/// Sleeps until one of the descriptors has an event, or (false) until the deadline. One that has passed still looks.
[[nodiscard]] bool poll_until(std::span<pollfd> descriptors, Deadline deadline) noexcept;

}  // namespace headrace::cluster
