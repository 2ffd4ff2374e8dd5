#pragma once

#include "base/steady_seconds.h"
#include "sched/clock.h"

namespace headrace {

/// The machine's own time.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] double now() const override { return steady_seconds(); }
};

}  // namespace headrace
