#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "kv/cache_manager.h"
#include "sched/clock.h"
#include "sched/composer.h"
#include "sched/cost_model.h"
#include "sched/deadlines.h"
#include "sched/queues.h"
#include "sched/residents.h"
#include "sched/scheduler_config.h"
#include "sched/sequence.h"
#include "sched/steps_in_flight.h"
#include "sched/tenant_accounts.h"
#include "step/step_plan.h"

namespace headrace {

enum class Admit : uint8_t {
  kYes,
  kQueueFull,         ///< preempted sequences count too
  kQueuedTokensFull,  ///< a prompt that finds the queue empty is never too much
  kTooLong,           ///< would not fit into the cache even if it were alone
};

struct SchedulerFigures {
  int64_t running = 0;
  int64_t waiting = 0;  ///< preempted ones included
  int64_t queued_tokens = 0;
  int64_t unread_tokens = 0;  ///< of the prompts of running sequences
  int64_t preemptions = 0;
  int64_t steps = 0;
  int64_t step_tokens = 0, last_step_tokens = 0;  ///< of all steps and of the last one
  int32_t prompt_step_tokens = 0;                 ///< that a step of prompts alone takes at most
  int32_t in_flight = 0;                          ///< steps composed whose result is not there
  int32_t in_flight_limit = 1;                    ///< D
  double step_target_seconds = 0;                 ///< that a step with prompts may take; 0: no decode rows, no limit
  double cost_error = 0;            ///< moving mean of |predicted - measured| / measured, of the slowest stage
  double prompt_token_seconds = 0;  ///< that a token of the present prompts costs, on the slowest stage
  double decode_token_seconds = 0;  ///< that a token of the sequences that decode does; 0: none do
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

  /// A new sequence, whose id was never used before. Everything but kYes leaves no trace.
  [[nodiscard]] Admit add(SequenceId sequence, SequenceSpec spec);
  /// `child` continues from the tokens and with the salt that `parent` has now; spec.tokens must be empty. It shares
  /// the parent's blocks, or is computed anew where none is free. An output that was asked for already is the parent's:
  /// the child goes on when a token is appended.
  void fork(SequenceId parent, SequenceId child, SequenceSpec spec);
  /// One more token; the sequence must be shorter than its max_len.
  void append(SequenceId sequence, TokenId token);
  /// In any state: done or cancelled. Its blocks are free at once.
  void finish(SequenceId sequence);

  /// The next step; nullopt where nothing can be computed before a result, a token or another sequence comes. The plan
  /// must be submitted, in this order.
  [[nodiscard]] std::optional<StepPlan> compose();
  /// The oldest step that is out has this result. Results of an earlier epoch are ignored. After a step that failed,
  /// and has none, only restart() helps.
  void complete(const StepResult& result);

  /// Sequences whose deadline has passed, each named once; the caller finishes them.
  [[nodiscard]] std::vector<SequenceId> take_expired();
  /// All steps that are out are lost and the caches empty: running sequences wait again, with their tokens. Later plans
  /// carry `epoch`.
  void restart(EpochId epoch);

  /// D: steps that should be out at most.
  [[nodiscard]] int32_t steps_in_flight_limit() const noexcept { return depth_.limit(); }
  [[nodiscard]] bool contains(SequenceId sequence) const noexcept { return sequences_.contains(sequence); }
  [[nodiscard]] SequenceState state(SequenceId sequence) const { return sequences_.at(sequence)->state(); }
  [[nodiscard]] std::span<const TokenId> tokens(SequenceId sequence) const {
    return sequences_.at(sequence)->spec.tokens;
  }
  /// Of the tokens it began with, how many were found in the cache when it first started.
  [[nodiscard]] int32_t cached_tokens(SequenceId sequence) const { return sequences_.at(sequence)->cached_tokens; }
  [[nodiscard]] SchedulerFigures figures() const noexcept;
  [[nodiscard]] const CostModel& costs() const noexcept { return costs_; }

 private:
  struct Out {
    StepId step{};
    StepLoad load;
    double composed_at = 0;
    int32_t steps_out = 0;  // itself included
  };
  Sequence& insert(SequenceId id, SequenceSpec spec);
  [[nodiscard]] Sequence& at(SequenceId id) { return *sequences_.at(id); }
  void choose_steps_in_flight() noexcept;

  SchedulerConfig config_;
  CacheManager& cache_;
  const Clock& clock_;
  TenantAccounts tenants_;
  Queues queues_;
  Residents residents_;
  CostModel costs_;
  Composer composer_;
  StepsInFlight depth_;
  Deadlines deadlines_;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::deque<Out> out_;  ///< steps whose result is not there, oldest first
  uint64_t arrivals_ = 0;
  uint64_t steps_ = 0;
  int64_t step_tokens_ = 0;
  int64_t last_step_tokens_ = 0;
  EpochId epoch_{};
};

}  // namespace headrace
