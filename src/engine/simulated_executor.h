#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "engine/simulated_stage.h"
#include "engine/virtual_clock.h"
#include "sched/executor.h"

namespace headrace {

/// From when to when something was busy with a step, in seconds.
struct BusySpan {
  double begin = 0;
  double end = 0;
};

/// What became of a step: one span for each stage and each link.
struct StepTimes {
  StepId step_id{};
  StepWork work;
  int32_t rows = 0;
  double submitted = 0;
  double done = 0;  ///< when the result was at the head
  std::vector<BusySpan> stages;
  std::vector<BusySpan> links;
};

/// Runs steps on a simulated pipeline (simulated_machine.h) in virtual time: stages in the order of the steps, each as
/// soon as it is free and the activations are there. Chooses tokens itself, out of what the simulated cache holds
/// (simulated_model.h), so a wrong block shows as a wrong token.
/// Threading: one thread.
class SimulatedExecutor final : public Executor {
 public:
  /// `clock` must outlive the executor. Throws Error(kInvalidArgument) as check_machine does.
  SimulatedExecutor(const SimulatedMachine& machine, VirtualClock& clock);

  void submit(StepPlan plan) override;
  [[nodiscard]] bool can_take() const override { return taken_at_ <= clock_.now(); }
  /// Moves the clock to when the result is there.
  [[nodiscard]] Result<std::monostate> receive(StepResult& result) override;

  /// When can_take() will be true, if nothing is submitted until then.
  [[nodiscard]] double takes_at() const noexcept { return taken_at_; }
  /// When the oldest outstanding result will be there; nullopt: none is outstanding.
  [[nodiscard]] std::optional<double> next_result_at() const noexcept;
  [[nodiscard]] size_t outstanding() const noexcept { return pending_.size(); }
  /// All steps that were submitted, in order.
  [[nodiscard]] const std::vector<StepTimes>& times() const noexcept { return times_; }

 private:
  struct Pending {
    Result<std::monostate> outcome{std::monostate{}};
    StepResult result;
    double done = 0;
  };
  [[nodiscard]] StepTimes pass(const StepPlan& plan);
  [[nodiscard]] Result<std::monostate> compute(const StepPlan& plan, StepResult& result);

  SimulatedMachine machine_;
  VirtualClock& clock_;
  std::vector<SimulatedStage> stages_;
  std::vector<double> stage_free_;  // when each stage has done what it was given
  std::vector<double> link_free_;
  double taken_at_ = 0;  // when the first stage begins the last step
  std::deque<Pending> pending_;
  std::vector<StepTimes> times_;
};

}  // namespace headrace
