#include "step/block_tables.h"

#include <iterator>

namespace headrace {
namespace {

Error bad_plan(const StepPlan& plan, const std::string& what) {
  return Error(ErrorCode::kCorrupt, cat("step ", raw(plan.step_id), ": ", what));
}

}  // namespace

std::vector<int64_t> BlockTables::sizes(SequenceId sequence) const {
  std::vector<int64_t> sizes(static_cast<size_t>(limits_.num_groups), 0);
  const auto found = tables_.find(sequence);
  for (size_t group = 0; found != tables_.end() && group < sizes.size(); ++group) {
    sizes[group] = std::ssize(found->second[group]);
  }
  return sizes;
}

Result<std::monostate> BlockTables::check_rows(const StepPlan& plan) const {
  int64_t tokens = 0;
  for (const PlanRow& row : plan.rows) {
    if (row.num_tokens < 1 || row.first_pos < 0 || row.num_outputs < 0 || row.num_outputs > row.num_tokens) {
      return bad_plan(plan, cat("sequence ", raw(row.sequence), " has ", row.num_tokens, " tokens from position ",
                                row.first_pos, " with ", row.num_outputs, " outputs"));
    }
    if (row.first_pos > limits_.max_seq_len - row.num_tokens) {
      return bad_plan(plan, cat("sequence ", raw(row.sequence), " goes past ", limits_.max_seq_len, " positions"));
    }
    tokens += row.num_tokens;
  }
  if (tokens != static_cast<int64_t>(plan.tokens.size()) || tokens > limits_.max_tokens) {
    return bad_plan(plan, cat("rows of ", tokens, " tokens, ", plan.tokens.size(), " tokens given, at most ",
                              limits_.max_tokens, " in a step"));
  }
  for (const TokenId token : plan.tokens) {
    if (token < 0 || token >= limits_.vocab_size) {
      return bad_plan(plan, cat("token ", token, " is not in the vocabulary of ", limits_.vocab_size));
    }
  }
  return std::monostate{};
}

Result<std::monostate> BlockTables::check_changes(const StepPlan& plan) {
  new_sizes_.clear();
  for (const SequenceId sequence : plan.retired) {
    new_sizes_.try_emplace(sequence, static_cast<size_t>(limits_.num_groups), 0);
  }
  for (const TableChange& change : plan.table_changes) {
    if (change.group < 0 || change.group >= limits_.num_groups || change.base_blocks < 0) {
      return bad_plan(plan, cat("change of group ", change.group, " from block ", change.base_blocks));
    }
    const int32_t blocks = limits_.group_blocks[static_cast<size_t>(change.group)];
    for (const BlockId id : change.blocks) {
      if (raw(id) < 0 || raw(id) >= blocks) {
        return bad_plan(plan, cat("block ", raw(id), " of group ", change.group, ", which has ", blocks));
      }
    }
    auto entry = new_sizes_.find(change.sequence);
    if (entry == new_sizes_.end()) entry = new_sizes_.emplace(change.sequence, sizes(change.sequence)).first;
    int64_t& size = entry->second[static_cast<size_t>(change.group)];
    if (change.base_blocks > size) {
      return Error(ErrorCode::kUnavailable,
                   cat("step ", raw(plan.step_id), ": the table of sequence ", raw(change.sequence), " has ", size,
                       " blocks, the change wants ", change.base_blocks));
    }
    size = change.base_blocks + std::ssize(change.blocks);
  }
  return std::monostate{};
}

Result<std::monostate> BlockTables::check_copies(const StepPlan& plan) const {
  for (const BlockCopy& copy : plan.copies) {
    if (copy.group < 0 || copy.group >= limits_.num_groups) return bad_plan(plan, cat("copy in group ", copy.group));
    const int32_t blocks = limits_.group_blocks[static_cast<size_t>(copy.group)];
    for (const BlockId id : {copy.from, copy.to}) {
      if (raw(id) < 0 || raw(id) >= blocks) {
        return bad_plan(plan, cat("copy of block ", raw(id), " of group ", copy.group, ", which has ", blocks));
      }
    }
    if (copy.from == copy.to) return bad_plan(plan, cat("copy of block ", raw(copy.from), " to itself"));
  }
  return std::monostate{};
}

Result<std::monostate> BlockTables::check_room(const StepPlan& plan) const {
  for (const PlanRow& row : plan.rows) {
    const int64_t end = static_cast<int64_t>(row.first_pos) + row.num_tokens;
    const auto changed = new_sizes_.find(row.sequence);
    for (int32_t group = 0; group < limits_.num_groups; ++group) {
      const int64_t blocks = changed != new_sizes_.end() ? changed->second[static_cast<size_t>(group)]
                                                         : std::ssize(table(row.sequence, group));
      if (blocks * limits_.block_tokens < end) {
        return Error(ErrorCode::kUnavailable, cat("step ", raw(plan.step_id), ": sequence ", raw(row.sequence), " has ",
                                                  blocks, " blocks in group ", group, " for ", end, " positions"));
      }
    }
  }
  return std::monostate{};
}

Result<std::monostate> BlockTables::apply(const StepPlan& plan) {
  if (plan.epoch != epoch_) {
    if (raw(plan.epoch) < raw(epoch_)) return bad_plan(plan, cat("of epoch ", raw(plan.epoch), " in ", raw(epoch_)));
    tables_.clear();
    epoch_ = plan.epoch;
  }
  if (auto ok = check_rows(plan); !ok) return ok;
  if (auto ok = check_changes(plan); !ok) return ok;
  if (auto ok = check_copies(plan); !ok) return ok;
  if (auto ok = check_room(plan); !ok) return ok;
  for (const SequenceId sequence : plan.retired) tables_.erase(sequence);
  for (const TableChange& change : plan.table_changes) {
    GroupTables& groups = tables_[change.sequence];
    groups.resize(static_cast<size_t>(limits_.num_groups));
    std::vector<BlockId>& blocks = groups[static_cast<size_t>(change.group)];
    blocks.resize(static_cast<size_t>(change.base_blocks));
    blocks.insert(blocks.end(), change.blocks.begin(), change.blocks.end());
  }
  return std::monostate{};
}

std::span<const BlockId> BlockTables::table(SequenceId sequence, int32_t group) const noexcept {
  const auto found = tables_.find(sequence);
  if (found == tables_.end()) return {};
  return found->second[static_cast<size_t>(group)];
}

}  // namespace headrace
