#pragma once

#include <chrono>

#include "sched/clock.h"

namespace headrace {

/// The machine's own time.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] double now() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

}  // namespace headrace
