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
  /// its changes, in time in proportion to the plan. On an error nothing has changed; kUnavailable means that a change
  /// lacks its base: ask for a resync. The first plan of a later epoch begins without tables; one of an earlier epoch
  /// is refused.
  [[nodiscard]] Result<std::monostate> apply(const StepPlan& plan);

  /// Changes how many blocks the group's slabs have, for plans from now on.
  void set_group_blocks(int32_t group, int32_t num_blocks) noexcept {
    limits_.group_blocks[static_cast<size_t>(group)] = num_blocks;
  }

  /// The table of a sequence in a group; empty where it has none.
  [[nodiscard]] std::span<const BlockId> table(SequenceId sequence, int32_t group) const noexcept;
  [[nodiscard]] size_t num_sequences() const noexcept { return tables_.size(); }

 private:
  using GroupTables = std::vector<std::vector<BlockId>>;

  [[nodiscard]] Result<std::monostate> check_rows(const StepPlan& plan) const;
  /// Leaves in new_sizes_ what the changes make of the tables.
  [[nodiscard]] Result<std::monostate> check_changes(const StepPlan& plan);
  [[nodiscard]] Result<std::monostate> check_copies(const StepPlan& plan) const;
  [[nodiscard]] Result<std::monostate> check_room(const StepPlan& plan) const;
  /// Blocks that the table has now; retired ones are not known here.
  [[nodiscard]] std::vector<int64_t> sizes(SequenceId sequence) const;

  PlanLimits limits_;
  EpochId epoch_{};
  std::unordered_map<SequenceId, GroupTables> tables_;
  std::unordered_map<SequenceId, std::vector<int64_t>>
      new_sizes_;  // of the plan's retired and changed sequences, by group
};

}  // namespace headrace
