#pragma once

#include <algorithm>

#include "sched/clock.h"

namespace headrace {

/// The time of a simulation: it passes when somebody says so.
class VirtualClock final : public Clock {
 public:
  [[nodiscard]] double now() const override { return now_; }
  /// A moment that has passed already changes nothing.
  void advance_to(double seconds) noexcept { now_ = std::max(now_, seconds); }

 private:
  double now_ = 0;
};

}  // namespace headrace
