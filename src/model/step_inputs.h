#pragma once

#include <vector>

#include "backend/backend.h"
#include "step/block_tables.h"
#include "step/step_plan.h"

namespace headrace {

/// A plan as the operators read it: integer arrays in device memory, uploaded in one piece for each step.
class StepInputs {
 public:
  StepInputs(Backend& backend, int32_t num_groups) : backend_(backend), num_groups_(num_groups) {}

  /// Lays out the plan, whose changes `tables` already has, and enqueues the upload. The previous step's work must be
  /// done.
  void upload(Queue& queue, const StepPlan& plan, const BlockTables& tables);

  [[nodiscard]] int64_t num_tokens() const noexcept { return num_tokens_; }
  [[nodiscard]] int64_t num_outputs() const noexcept { return num_outputs_; }
  [[nodiscard]] const TokenId* tokens() const noexcept { return at(tokens_); }
  [[nodiscard]] const int32_t* positions() const noexcept { return at(positions_); }
  /// Which rows (tokens of the step) are outputs.
  [[nodiscard]] const int32_t* output_rows() const noexcept { return at(output_rows_); }
  /// Of each token, by cache group: its slot, its sequence's place in block_table().
  [[nodiscard]] const int32_t* slots(int32_t group) const noexcept { return at(slots_[static_cast<size_t>(group)]); }
  [[nodiscard]] const int32_t* table_begin(int32_t group) const noexcept {
    return at(table_begin_[static_cast<size_t>(group)]);
  }
  /// All tables of all groups.
  [[nodiscard]] const int32_t* block_table() const noexcept { return at(0); }

 private:
  [[nodiscard]] const int32_t* at(size_t offset) const noexcept { return device_.as<const int32_t>() + offset; }
  void lay_out_group(const StepPlan& plan, const BlockTables& tables, int32_t group);

  Backend& backend_;
  int32_t num_groups_;
  int64_t num_tokens_ = 0;
  int64_t num_outputs_ = 0;
  size_t tokens_ = 0, positions_ = 0, output_rows_ = 0;
  std::vector<size_t> slots_, table_begin_;
  std::vector<int32_t> host_;
  std::vector<int32_t> group_slots_, group_begins_;  // of the group being laid out
  DeviceBuffer device_;
};

}  // namespace headrace
