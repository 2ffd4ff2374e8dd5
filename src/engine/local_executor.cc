#include "engine/local_executor.h"

#include <chrono>

namespace headrace {

Result<std::monostate> LocalExecutor::receive(StepResult& result) {
  HR_CHECK(!plans_.empty(), "no step is outstanding");
  const StepPlan plan = std::move(plans_.front());
  plans_.pop_front();
  output_.result.stage_seconds.clear();
  for (const std::unique_ptr<Stage>& stage : stages_) {
    const auto start = std::chrono::steady_clock::now();
    std::swap(activations_, output_.activations);
    if (auto ran = stage->run(plan, activations_, output_); !ran) return ran;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    output_.result.stage_seconds.push_back(taken.count());
  }
  std::swap(result, output_.result);
  return std::monostate{};
}

}  // namespace headrace
