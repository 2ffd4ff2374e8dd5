#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "step/step_plan.h"

namespace headrace {

/// What a stage must hold a plan against.
struct PlanLimits {
  int32_t num_groups = 0;             ///< cache groups of the model
  std::vector<int32_t> group_blocks;  ///< blocks in each group's slabs
  int32_t block_tokens = 0;
  int32_t vocab_size = 0;
  int32_t max_tokens = 0;  ///< tokens in one step
  int32_t max_seq_len = 0;
};

/// The block tables of all sequences as a stage keeps them: each plan brings changes only.
/// Threading: the stage's thread only.
class BlockTables {
 public:
  explicit BlockTables(PlanLimits limits) : limits_(std::move(limits)) {}

  /// Checks the whole plan against the limits (rows, tokens, positions, block ids, room for every position) and applies
  /// its changes. On an error nothing has changed; kUnavailable means that a change lacks its base: ask for a resync.
  [[nodiscard]] Result<std::monostate> apply(const StepPlan& plan);

  /// The table of a sequence in a group; empty where it has none.
  [[nodiscard]] std::span<const BlockId> table(SequenceId sequence, int32_t group) const noexcept;
  [[nodiscard]] size_t num_sequences() const noexcept { return tables_.size(); }

 private:
  using GroupTables = std::vector<std::vector<BlockId>>;

  [[nodiscard]] Result<std::monostate> check_rows(const StepPlan& plan) const;
  [[nodiscard]] Result<std::monostate> check_changes(const StepPlan& plan) const;
  [[nodiscard]] Result<std::monostate> check_copies(const StepPlan& plan) const;
  [[nodiscard]] Result<std::monostate> check_room(const StepPlan& plan) const;
  [[nodiscard]] bool is_retired(const StepPlan& plan, SequenceId sequence) const noexcept;
  /// Blocks that the table will have once the plan's changes apply.
  [[nodiscard]] int64_t blocks_after(const StepPlan& plan, SequenceId sequence, int32_t group) const noexcept;

  PlanLimits limits_;
  std::unordered_map<SequenceId, GroupTables> tables_;
};

}  // namespace headrace
