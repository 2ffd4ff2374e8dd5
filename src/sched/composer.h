#pragma once

#include <vector>

#include "kv/cache_manager.h"
#include "sched/cost_model.h"
#include "sched/queues.h"
#include "sched/residents.h"
#include "sched/scheduler_config.h"
#include "sched/tenant_accounts.h"
#include "step/step_plan.h"

namespace headrace {

/// Fills steps. First decode rows, oldest served first, until their marginal cost reaches 1/D of that of all sequences
/// that decode; the row that crosses is taken, so there is at least one. Then chunks of prompts up to the step's target
/// time (Dynamic SplitFuse, arXiv:2401.08671): long prompts are cut, short ones joined, and steps cost about the same.
class Composer {
 public:
  struct Step {
    StepPlan plan;
    StepLoad load;
    uint64_t number = 0;  ///< above 0, rises with each step
  };

  Composer(const SchedulerConfig& config, CacheManager& cache, Queues& queues, Residents& residents,
           TenantAccounts& tenants, const CostModel& costs)
      : config_(config), cache_(cache), queues_(queues), residents_(residents), tenants_(tenants), costs_(costs) {}

  /// Adds rows to `step`, where up to `steps_in_flight` share the work; none where nothing can be computed.
  void fill(Step& step, int32_t steps_in_flight);

  /// Seconds that a step with prompts may take beside decode rows; infinity where there are none.
  [[nodiscard]] double target_seconds(int32_t steps_in_flight) const noexcept;
  /// Tokens of a step of prompts alone.
  [[nodiscard]] int32_t worthwhile_tokens() const noexcept;

 private:
  /// Sequences that will decode before long beside the present ones, with which a step takes `step_seconds`.
  [[nodiscard]] double soon_decoding(double step_seconds) const noexcept;
  void take_decodes(Step& step, int32_t steps_in_flight);
  void take_prompts(Step& step, int32_t steps_in_flight, double target);
  [[nodiscard]] Sequence* next_to_start();
  /// Tokens of a prompt from `first_pos` on for which the step has time. 0: leave it to the next one.
  [[nodiscard]] int64_t timely_tokens(const Step& step, double target, int32_t first_pos) const noexcept;
  /// Tokens of a prompt of which at most so many return an output, where it wants more than its last one.
  [[nodiscard]] static int64_t returned_tokens(const Sequence& sequence, int64_t outputs) noexcept;
  /// Tokens of a step without decode rows.
  [[nodiscard]] int64_t pipelined_tokens(int32_t steps_in_flight) const noexcept;
  void add_row(Step& step, Sequence& sequence, int32_t num_tokens);
  void add_table_changes(StepPlan& plan, Sequence& sequence) const;

  const SchedulerConfig& config_;
  CacheManager& cache_;
  Queues& queues_;
  Residents& residents_;
  TenantAccounts& tenants_;
  const CostModel& costs_;
  std::vector<Sequence*> members_;  ///< of the step that is filled
  int32_t overtakings_ = 0;         ///< starts since the sequence that waits longest was last considered
};

}  // namespace headrace
