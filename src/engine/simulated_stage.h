#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/simulated_machine.h"

namespace headrace {

/// One stage's block tables and what its cache holds: a number for each slot, as simulated_model.h says.
/// Threading: one thread.
class SimulatedStage {
 public:
  explicit SimulatedStage(const SimulatedMachine& machine);

  /// Applies the plan's changes and copies and computes its rows: writes to `answers`, for each token of the plan, what
  /// the positions that it sees amount to.
  [[nodiscard]] Result<std::monostate> run(const StepPlan& plan, std::span<uint64_t> answers);

 private:
  struct Group {
    int32_t window = 0;
    std::vector<std::unique_ptr<uint64_t[]>> slots;  // of each block; null: never written
    std::vector<uint64_t> sums;                      // of all slots of each block
  };
  [[nodiscard]] uint64_t slot(const Group& group, std::span<const BlockId> table, int32_t position) const;
  void write(Group& group, std::span<const BlockId> table, int32_t position, uint64_t value);
  void copy(const BlockCopy& copy);
  /// Sum over the positions [begin, end).
  [[nodiscard]] uint64_t sum(const Group& group, std::span<const BlockId> table, int32_t begin, int32_t end) const;
  void spoil(const PlanRow& row);
  void run_row(const PlanRow& row, std::span<const TokenId> tokens, std::span<uint64_t> answers);

  int32_t block_tokens_;
  BlockTables tables_;
  std::vector<Group> groups_;
};

}  // namespace headrace
