#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "model/stage.h"
#include "sched/executor.h"
#include "sched/step_timeline.h"

namespace headrace {

/// Runs all stages in this process, one after the other, when a result is asked for.
class LocalExecutor final : public Executor {
 public:
  /// `stages` hold all units of the model, in order. Takes `max_steps` before the first one's result is asked for; more
  /// than one gains nothing here. `timeline` is told of every step; null: none is.
  explicit LocalExecutor(std::vector<std::unique_ptr<Stage>> stages, int32_t max_steps = 1,
                         std::shared_ptr<StepTimeline> timeline = {})
      : stages_(std::move(stages)), max_steps_(static_cast<size_t>(max_steps)), timeline_(std::move(timeline)) {}

  void submit(StepPlan plan) override { plans_.push_back(std::move(plan)); }
  [[nodiscard]] bool can_take() const override { return plans_.size() < max_steps_; }
  [[nodiscard]] Result<std::monostate> receive(StepResult& result) override;

 private:
  std::vector<std::unique_ptr<Stage>> stages_;
  size_t max_steps_;
  std::shared_ptr<StepTimeline> timeline_;
  std::deque<StepPlan> plans_;
  StageOutput output_;
  std::vector<float> activations_;
};

}  // namespace headrace
