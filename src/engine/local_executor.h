#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "model/stage.h"
#include "sched/executor.h"

namespace headrace {

/// Runs all stages in this process, one after the other, when a result is asked for.
class LocalExecutor final : public Executor {
 public:
  /// `stages` hold all units of the model, in order.
  explicit LocalExecutor(std::vector<std::unique_ptr<Stage>> stages) : stages_(std::move(stages)) {}

  void submit(StepPlan plan) override { plans_.push_back(std::move(plan)); }
  [[nodiscard]] bool can_take() const override { return plans_.empty(); }
  [[nodiscard]] Result<std::monostate> receive(StepResult& result) override;

 private:
  std::vector<std::unique_ptr<Stage>> stages_;
  std::deque<StepPlan> plans_;
  StageOutput output_;
  std::vector<float> activations_;
};

}  // namespace headrace
