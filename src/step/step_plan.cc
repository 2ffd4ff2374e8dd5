#include "step/step_plan.h"

namespace headrace {

int64_t num_outputs(const StepPlan& plan) noexcept {
  int64_t n = 0;
  for (const PlanRow& row : plan.rows) n += row.num_outputs;
  return n;
}

}  // namespace headrace
