#include "engine/local_executor.h"

namespace headrace {

Result<std::monostate> LocalExecutor::receive(StepResult& result) {
  HR_CHECK(!plans_.empty(), "no step is outstanding");
  const StepPlan plan = std::move(plans_.front());
  plans_.pop_front();
  for (const std::unique_ptr<Stage>& stage : stages_) {
    std::swap(activations_, output_.activations);
    if (auto ran = stage->run(plan, activations_, output_); !ran) return ran;
  }
  std::swap(result, output_.result);
  return std::monostate{};
}

}  // namespace headrace
