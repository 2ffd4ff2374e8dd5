#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kv/cache_manager.h"
#include "sched/clock.h"
#include "sched/cost_model.h"
#include "sched/sequence.h"
#include "step/step_plan.h"

namespace headrace {

struct SchedulerConfig {
  int32_t num_groups = 1;                        ///< cache groups of the model
  int32_t block_tokens = 16;                     ///< as the cache's
  int32_t max_step_tokens = 512;                 ///< tokens in one step (--max-num-batched-tokens)
  int32_t max_chunk_tokens = 0;                  ///< of one prompt in one step; 0: max_step_tokens
  int32_t max_num_seqs = 256;                    ///< sequences running at once
  int32_t max_queue = 1 << 20;                   ///< sequences waiting to start
  int64_t max_queued_tokens = int64_t{1} << 40;  ///< tokens of all of these
  int32_t steps_in_flight = 0;                   ///< 0: found from costs
  int32_t max_steps_in_flight = 32;
  double step_target_seconds = 0;                   ///< of a step with prompts beside decode rows; 0: found from costs
  std::vector<StageCost> stage_costs{StageCost{}};  ///< one for each stage: where the fit of costs begins
};

enum class Admit : uint8_t {
  kYes,
  kQueueFull,
  kQueuedTokensFull,
  kTooLong,  ///< would not fit into the cache even if it were alone
};

struct SchedulerFigures {
  int64_t running = 0;
  int64_t waiting = 0;  ///< preempted ones included
  int64_t queued_tokens = 0;
  int64_t preemptions = 0;
  int64_t steps = 0;
  int32_t in_flight = 0;           ///< steps composed whose result is not there
  int32_t in_flight_limit = 1;     ///< D
  double step_target_seconds = 0;  ///< of the last step that had prompts beside decode rows
  double cost_error = 0;           ///< moving mean of |predicted - measured| / measured, of the slowest stage
};

/// Decides what each step computes. Sequences wait, run, are preempted when blocks are short, and finish; a step takes
/// decode rows first, then chunks of prompts up to a target time. Up to steps_in_flight_limit() steps may be composed
/// before the result of the first is there: only a sampled row waits for its result.
///
/// The caller's loop: add(); while fewer than steps_in_flight_limit() steps are out, submit what compose() gives; for
/// each result complete(), then append() or finish() for every sequence whose last output it holds; finish() whatever
/// take_expired() names. An output of a sequence that was finished meanwhile is to be dropped; one of a preempted
/// sequence is as good as any.
/// Threading: one thread. No call blocks.
class Scheduler {
 public:
  /// `cache` and `clock` must outlive the scheduler, which is the only user of the cache.
  Scheduler(SchedulerConfig config, CacheManager& cache, const Clock& clock);
  ~Scheduler();

  /// A new sequence, whose id was never used before. Everything but kYes leaves no trace.
  [[nodiscard]] Admit add(SequenceId sequence, SequenceSpec spec);
  /// `child` continues from the tokens that `parent` has now, whose spec.tokens is to be empty and whose salt is the
  /// parent's: it shares the parent's blocks, or is computed anew when there are none. Its outputs are those of tokens
  /// appended to it.
  void fork(SequenceId parent, SequenceId child, SequenceSpec spec);
  /// One more token; the sequence must be shorter than its max_len.
  void append(SequenceId sequence, TokenId token);
  /// In any state: done or cancelled. Its blocks are free at once.
  void finish(SequenceId sequence);

  /// The next step; nullopt where nothing can be computed before a result, a token or another sequence comes. The plan
  /// must be submitted, in this order.
  [[nodiscard]] std::optional<StepPlan> compose();
  /// The oldest step that is out has this result. Results of an earlier epoch are ignored.
  void complete(const StepResult& result);

  /// Sequences whose deadline has passed, each named once; the caller finishes them.
  [[nodiscard]] std::vector<SequenceId> take_expired();
  /// All steps that are out are lost and the caches empty: running sequences wait again, with their tokens. Later plans
  /// carry `epoch`.
  void restart(EpochId epoch);

  /// D: steps that should be out at most.
  [[nodiscard]] int32_t steps_in_flight_limit() const noexcept;
  [[nodiscard]] bool contains(SequenceId sequence) const noexcept;
  [[nodiscard]] SequenceState state(SequenceId sequence) const;
  [[nodiscard]] std::span<const TokenId> tokens(SequenceId sequence) const;
  /// Of the tokens it began with, how many were found in the cache when it first started.
  [[nodiscard]] int32_t cached_tokens(SequenceId sequence) const;
  [[nodiscard]] SchedulerFigures figures() const noexcept;
  [[nodiscard]] const CostModel& costs() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
