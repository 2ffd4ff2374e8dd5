#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>

#include "sched/cost_model.h"

namespace headrace {

/// How many steps should be out at once (D). One stage: 1. Over a pipeline, the D with the highest predicted rate: with
/// the rows shared among D steps, a step returns every max(slowest stage, round trip / D). At least one step for each
/// stage where there is work for that. Threading: one thread.
class StepsInFlight {
 public:
  /// `fixed` > 0: always that many. Else at most `most`.
  StepsInFlight(int32_t fixed, int32_t most) noexcept : fixed_(fixed), most_(most), limit_(fixed > 0 ? fixed : 1) {}

  /// A step came back `round_trip` seconds after it was composed as one of `steps_out`; the stages computed for
  /// stage_seconds of them.
  void measured(double round_trip, std::span<const double> stage_seconds, int32_t steps_out) noexcept;
  /// Chooses again for `decodes`, all running decode rows, and, if there are any prompts, their chunks, which fill up a
  /// step to `target_seconds(D)`. The choice changes only for a rate that is clearly better.
  void choose(const CostModel& costs, const StepLoad& decodes, bool prompts,
              const std::function<double(int32_t)>& target_seconds) noexcept;

  [[nodiscard]] int32_t limit() const noexcept { return limit_; }

 private:
  /// Decode rows a second. `target`: of a step that prompts fill up; 0: there are none.
  [[nodiscard]] double rate(const CostModel& costs, const StepLoad& decodes, int32_t steps,
                            double target) const noexcept;

  int32_t fixed_;
  int32_t most_;
  int32_t limit_;
  double link_seconds_ = -1;    ///< of a round trip, what is not computing: the least seen of late; < 0: none seen
  double steps_to_fill_ = 0;    ///< round trip over the slowest stage, moving mean
  std::deque<double> slowest_;  ///< what the slowest stage took of each of the last steps, up to `most_`
};

}  // namespace headrace
