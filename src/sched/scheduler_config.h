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
  /// Steps of prompts alone take only as many tokens as make them cheaper: more would just keep others waiting.
  bool find_step_tokens = false;
  int32_t max_chunk_tokens = 0;  ///< of one prompt in one step; 0: max_step_tokens
  /// Outputs of a step in which prompts have more than their last one (log-probabilities of a prompt): each is as long
  /// as the vocabulary.
  int32_t max_prompt_outputs = std::numeric_limits<int32_t>::max();
  int32_t max_num_seqs = 256;  ///< sequences running at once
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
