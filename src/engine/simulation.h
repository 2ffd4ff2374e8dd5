#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/trace_writer.h"
#include "engine/load_figures.h"
#include "engine/request_load.h"
#include "engine/simulated_executor.h"
#include "engine/simulated_machine.h"
#include "kv/cache_manager.h"
#include "sched/scheduler.h"

namespace headrace {

struct SimulationConfig {
  SimulatedMachine machine;
  SchedulerConfig scheduler;  ///< num_groups and block_tokens come from the machine
  bool prefix_caching = true;
  bool balanced = true;  ///< false: unbalanced_scheduling() in place of the scheduler
  std::vector<LoadRequest> load;
  int32_t clients = 0;               ///< above 0: that many clients, each with one request after the other, in order
  int32_t shared_prefix_tokens = 0;  ///< that all prompts begin with
  bool tell_lengths = false;         ///< requests say how long their answers will be
  uint64_t seed = 1;                 ///< of the prompts' tokens
};

/// What became of a load.
struct SimulationResult {
  std::vector<RequestTimes> requests;  ///< the complete ones, in the order of the load
  int64_t refused = 0;                 ///< would not fit
  int64_t checked_tokens = 0;
  int64_t wrong_tokens = 0;  ///< against the reference of the simulated model
  std::string first_wrong;   ///< which one
  std::vector<StepTimes> steps;
  int32_t most_in_flight = 0;
  SchedulerFigures scheduler;
  CacheFigures cache;
};

/// Runs the load in virtual time. Throws Error where the machine is none, a step fails, or the scheduler has nothing to
/// do before all requests are complete.
[[nodiscard]] SimulationResult run_simulation(const SimulationConfig& config);

/// What is to be known of the pipeline, beside load_figures().
struct PipelineFigures {
  std::vector<double> bubbles;         ///< share of the duration in which each stage was idle
  std::vector<double> steady_bubbles;  ///< the same while the middle half of all output tokens came
  std::vector<double> link_busy;       ///< share of the duration in which each link carried bytes
  double mean_in_flight = 0;           ///< steps, over time
  double mean_rows = 0;                ///< of a step
  double mean_tokens = 0;              ///< of a step
  Spread step_seconds;                 ///< of the slowest stage of each step
};
[[nodiscard]] PipelineFigures pipeline_figures(const SimulationResult& result);

/// Where the cost model begins: what it would measure on the machine by itself.
[[nodiscard]] std::vector<StageCost> measured_costs(const SimulatedMachine& machine);

/// Stages and links as tracks.
void write_timeline(const SimulationResult& result, TraceWriter& trace);

}  // namespace headrace
