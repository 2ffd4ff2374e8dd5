#pragma once

#include <vector>

#include "kv/cache_manager.h"
#include "sched/clock.h"
#include "sched/executor.h"
#include "sched/scheduler_config.h"

namespace headrace {

/// Where measured costs of steps come from.
struct CalibrationRun {
  Executor& executor;  ///< nothing is outstanding
  CacheConfig cache;
  SchedulerConfig scheduler;
  const Clock& clock;
  int32_t max_model_len = 0;
  double seconds = 0.3;  ///< begins no further step after that
};

/// The costs of each stage by steps of prompts of 32 tokens up to scheduler.max_step_tokens, of single tokens after
/// them, and of several sequences: a scheduler that begins with them plans its first steps well. Steps are of epoch 0,
/// and leave garbage in the cache. Where a step fails, the costs that the scheduler would begin with: the step will
/// fail again, beside somebody who can be told.
[[nodiscard]] std::vector<StageCost> calibrate_steps(CalibrationRun run);

}  // namespace headrace
