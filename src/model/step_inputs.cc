#include "model/step_inputs.h"

#include <algorithm>

namespace headrace {

void StepInputs::lay_out_group(const StepPlan& plan, const BlockTables& tables, int32_t group) {
  group_slots_.clear();
  group_begins_.clear();
  for (const PlanRow& row : plan.rows) {
    const std::span<const BlockId> table = tables.table(row.sequence, group);
    const auto begin = static_cast<int32_t>(host_.size());
    const int32_t end_pos = row.first_pos + row.num_tokens;
    const auto used = static_cast<size_t>((end_pos + kBlockTokens - 1) / kBlockTokens);
    for (size_t i = 0; i < used; ++i) host_.push_back(raw(table[i]));
    for (int32_t pos = row.first_pos; pos < end_pos; ++pos) {
      group_slots_.push_back(raw(table[static_cast<size_t>(pos / kBlockTokens)]) * kBlockTokens + pos % kBlockTokens);
      group_begins_.push_back(begin);
    }
  }
}

void StepInputs::upload(Queue& queue, const StepPlan& plan, const BlockTables& tables) {
  host_.clear();
  const auto append = [&](const std::vector<int32_t>& values) {
    const size_t offset = host_.size();
    host_.insert(host_.end(), values.begin(), values.end());
    return offset;
  };
  slots_.clear();
  table_begin_.clear();
  for (int32_t group = 0; group < num_groups_; ++group) {
    lay_out_group(plan, tables, group);
    slots_.push_back(append(group_slots_));
    table_begin_.push_back(append(group_begins_));
  }
  tokens_ = append(plan.tokens);
  num_tokens_ = static_cast<int64_t>(plan.tokens.size());
  positions_ = host_.size();
  for (const PlanRow& row : plan.rows) {
    for (int32_t i = 0; i < row.num_tokens; ++i) host_.push_back(row.first_pos + i);
  }
  output_rows_ = host_.size();
  int32_t row_begin = 0;
  for (const PlanRow& row : plan.rows) {
    for (int32_t i = row.num_tokens - row.num_outputs; i < row.num_tokens; ++i) host_.push_back(row_begin + i);
    row_begin += row.num_tokens;
  }
  num_outputs_ = static_cast<int64_t>(host_.size() - output_rows_);

  const auto bytes = static_cast<int64_t>(host_.size() * sizeof(int32_t));
  // Grows by halves, so that a long-lived server soon stops allocating here.
  if (bytes > device_.bytes()) device_ = DeviceBuffer(backend_, bytes + bytes / 2);
  backend_.upload(queue, device_.data(), host_.data(), bytes);
}

}  // namespace headrace
