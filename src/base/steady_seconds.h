#pragma once

#include <chrono>

namespace headrace {

/// Now, in seconds of this machine's steady clock since some fixed moment.
[[nodiscard]] inline double steady_seconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace headrace
