#pragma once

#include <memory>
#include <optional>

#include "kv/cache_manager.h"
#include "sched/scheduler.h"

namespace headrace {

/// What decides the steps of a simulation: the engine's scheduler, or what it is compared with.
class SimulatedScheduling {
 public:
  virtual ~SimulatedScheduling() = default;
  [[nodiscard]] virtual bool add(SequenceId sequence, SequenceSpec spec) = 0;  ///< false: refused for good
  virtual void append(SequenceId sequence, TokenId token) = 0;
  virtual void finish(SequenceId sequence) = 0;
  [[nodiscard]] virtual std::optional<StepPlan> compose() = 0;
  virtual void complete(const StepResult& result) = 0;
  [[nodiscard]] virtual int32_t steps_in_flight_limit() const = 0;
  [[nodiscard]] virtual SchedulerFigures figures() const = 0;
};

/// The engine's own scheduler. `cache` and `clock` must outlive it.
[[nodiscard]] std::unique_ptr<SimulatedScheduling> engine_scheduling(const SchedulerConfig& config, CacheManager& cache,
                                                                     const Clock& clock);

/// What pipelines do without balancing, for comparison: `config.steps_in_flight` groups of sequences take turns, a
/// sequence stays in the group that took it in, prompts go first and in whole steps of their own, and a step has all
/// rows of its group. A sequence starts when the blocks of its whole length are free; no preemption.
/// `cache`, without prefix caching, must outlive it.
[[nodiscard]] std::unique_ptr<SimulatedScheduling> unbalanced_scheduling(const SchedulerConfig& config,
                                                                         CacheManager& cache);

}  // namespace headrace
