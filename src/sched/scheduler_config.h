#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sched/cost_model.h"

namespace headrace {

struct SchedulerConfig {
  int32_t num_groups = 1;         ///< cache groups of the model
  int32_t block_tokens = 16;      ///< as the cache's
  int32_t max_step_tokens = 512;  ///< tokens in one step (--max-num-batched-tokens)
  int32_t max_chunk_tokens = 0;   ///< of one prompt in one step; 0: max_step_tokens
  int32_t max_num_seqs = 256;     ///< sequences running at once
  /// Of a prompt, the tokens that must find room before it starts. Where all groups have windows, the longest window
  /// and max_step_tokens are enough.
  int32_t max_prompt_claim = std::numeric_limits<int32_t>::max();
  int64_t max_queue = std::numeric_limits<int64_t>::max();          ///< sequences waiting to start
  int64_t max_queued_tokens = std::numeric_limits<int64_t>::max();  ///< tokens of all of these
  int32_t steps_in_flight = 0;                                      ///< 0: found from costs
  int32_t max_steps_in_flight = 32;
  double step_target_seconds = 0;                   ///< of a step with prompts beside decode rows; 0: found from costs
  std::vector<StageCost> stage_costs{StageCost{}};  ///< one for each stage: where the fit of costs begins
};

}  // namespace headrace
