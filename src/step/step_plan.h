#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace headrace {

/// One sequence's share of a step: the tokens of positions [first_pos, first_pos + num_tokens). The positions are
/// authoritative: whatever the cache holds at or beyond first_pos is garbage.
struct PlanRow {
  SequenceId sequence{};
  int32_t first_pos = 0;
  int32_t num_tokens = 0;
  int32_t num_outputs = 0;  ///< of the row's last tokens, how many return an output; 1 where the row is sampled
  bool operator==(const PlanRow&) const = default;
};

/// A change of one sequence's block table in one cache group since the step before: the table becomes its first
/// `base_blocks` entries, followed by `blocks`. base_blocks = 0 gives the whole table.
struct TableChange {
  SequenceId sequence{};
  int32_t group = 0;
  int32_t base_blocks = 0;
  std::vector<BlockId> blocks;
  bool operator==(const TableChange&) const = default;
};

/// A block whose contents are copied to another one of the same cache group, in every layer of the group, before the
/// step's forward pass and after all earlier steps.
struct BlockCopy {
  int32_t group = 0;
  BlockId from{};
  BlockId to{};
  bool operator==(const BlockCopy&) const = default;
};

/// All that a stage needs for one forward pass: a plain value that can be serialised, logged, and replayed from the
/// start of an epoch. Stages run plans in the order of step_id.
struct StepPlan {
  EpochId epoch{};
  StepId step_id{};
  std::vector<PlanRow> rows;
  std::vector<TokenId> tokens;  ///< of all rows, one after the other
  std::vector<TableChange> table_changes;
  std::vector<SequenceId> retired;  ///< sequences whose tables a stage may forget, before the changes apply
  std::vector<BlockCopy> copies;    ///< in this order: one may read what one before it wrote
  bool operator==(const StepPlan&) const = default;
};

[[nodiscard]] int64_t num_outputs(const StepPlan& plan) noexcept;

/// Where an output came from.
struct OutputRow {
  SequenceId sequence{};
  int32_t position = 0;
  bool operator==(const OutputRow&) const = default;
};

/// What came back from a step: `outputs` in the order of the plan's rows and positions, with `width` logits each in
/// `data`, or (width 0) one token each in `tokens` where the executor chooses tokens itself.
struct StepResult {
  EpochId epoch{};
  StepId step_id{};
  int64_t width = 0;
  std::vector<OutputRow> outputs;
  std::vector<float> data;
  std::vector<TokenId> tokens;
  std::vector<double> stage_seconds;  ///< how long each stage computed, in the order of the stages
};

}  // namespace headrace
