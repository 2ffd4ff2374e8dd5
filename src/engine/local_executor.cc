#include "engine/local_executor.h"

#include "base/steady_seconds.h"

namespace headrace {

Result<std::monostate> LocalExecutor::receive(StepResult& result) {
  HR_CHECK(!plans_.empty(), "no step is outstanding");
  const StepPlan plan = std::move(plans_.front());
  plans_.pop_front();
  output_.result.stage_seconds.clear();
  StepSlices slices{.step = plan.step_id, .rows = plan.rows.size(), .tokens = plan.tokens.size()};
  for (const std::unique_ptr<Stage>& stage : stages_) {
    const double begin = steady_seconds();
    std::swap(activations_, output_.activations);
    if (auto ran = stage->run(plan, activations_, output_); !ran) return ran;
    const double end = steady_seconds();
    output_.result.stage_seconds.push_back(end - begin);
    if (timeline_) slices.stages.push_back({.compute = {begin, end}});
  }
  if (timeline_) timeline_->add(slices);
  std::swap(result, output_.result);
  return std::monostate{};
}

}  // namespace headrace
