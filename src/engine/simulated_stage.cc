#include "engine/simulated_stage.h"

#include <algorithm>

#include "engine/simulated_model.h"

namespace headrace {
namespace {

/// What a slot holds between the start of a step that writes it and its write.
constexpr uint64_t kSpoilt = 0x5B011ED0BAD0CA5E;

size_t at(BlockId id) { return static_cast<size_t>(raw(id)); }

}  // namespace

SimulatedStage::SimulatedStage(const SimulatedMachine& machine)
    : block_tokens_(machine.block_tokens), tables_(plan_limits(machine)) {
  for (const SimulatedGroup& config : machine.groups) {
    Group& group = groups_.emplace_back();
    group.window = config.window;
    group.slots.resize(static_cast<size_t>(config.num_blocks));
    group.sums.resize(static_cast<size_t>(config.num_blocks));
  }
}

uint64_t SimulatedStage::slot(const Group& group, std::span<const BlockId> table, int32_t position) const {
  const auto& slots = group.slots[at(table[static_cast<size_t>(position / block_tokens_)])];
  return slots ? slots[static_cast<size_t>(position % block_tokens_)] : 0;
}

void SimulatedStage::write(Group& group, std::span<const BlockId> table, int32_t position, uint64_t value) {
  const size_t block = at(table[static_cast<size_t>(position / block_tokens_)]);
  auto& slots = group.slots[block];
  if (!slots) slots = std::make_unique<uint64_t[]>(static_cast<size_t>(block_tokens_));
  uint64_t& held = slots[static_cast<size_t>(position % block_tokens_)];
  group.sums[block] += value - held;
  held = value;
}

void SimulatedStage::copy(const BlockCopy& copy) {
  Group& group = groups_[static_cast<size_t>(copy.group)];
  const auto& from = group.slots[at(copy.from)];
  auto& to = group.slots[at(copy.to)];
  if (!to) to = std::make_unique<uint64_t[]>(static_cast<size_t>(block_tokens_));
  for (int32_t i = 0; i < block_tokens_; ++i) to[static_cast<size_t>(i)] = from ? from[static_cast<size_t>(i)] : 0;
  group.sums[at(copy.to)] = group.sums[at(copy.from)];
}

uint64_t SimulatedStage::sum(const Group& group, std::span<const BlockId> table, int32_t begin, int32_t end) const {
  uint64_t total = 0;
  while (begin < end) {
    if (begin % block_tokens_ == 0 && begin + block_tokens_ <= end) {
      total += group.sums[at(table[static_cast<size_t>(begin / block_tokens_)])];
      begin += block_tokens_;
    } else {
      total += slot(group, table, begin++);
    }
  }
  return total;
}

void SimulatedStage::spoil(const PlanRow& row) {
  for (size_t group = 0; group < groups_.size(); ++group) {
    const auto table = tables_.table(row.sequence, static_cast<int32_t>(group));
    for (int32_t i = 0; i < row.num_tokens; ++i) write(groups_[group], table, row.first_pos + i, kSpoilt);
  }
}

void SimulatedStage::run_row(const PlanRow& row, std::span<const TokenId> tokens, std::span<uint64_t> answers) {
  std::vector<std::span<const BlockId>> tables;
  std::vector<uint64_t> sums;
  for (size_t group = 0; group < groups_.size(); ++group) {
    tables.push_back(tables_.table(row.sequence, static_cast<int32_t>(group)));
    const int32_t window = groups_[group].window;
    const int32_t begin = window == 0 ? 0 : std::max(0, row.first_pos - window + 1);
    sums.push_back(sum(groups_[group], tables[group], begin, row.first_pos));
  }
  for (int32_t i = 0; i < row.num_tokens; ++i) {
    const int32_t position = row.first_pos + i;
    const uint64_t earlier = simulated_join(sums);
    for (size_t group = 0; group < groups_.size(); ++group) {
      const uint64_t value = simulated_value(tokens[static_cast<size_t>(i)], position, group, earlier);
      write(groups_[group], tables[group], position, value);
      sums[group] += value;
    }
    answers[static_cast<size_t>(i)] = simulated_join(sums);
    for (size_t group = 0; group < groups_.size(); ++group) {
      const int32_t window = groups_[group].window;
      if (window > 0 && position + 1 >= window)
        sums[group] -= slot(groups_[group], tables[group], position + 1 - window);
    }
  }
}

Result<std::monostate> SimulatedStage::run(const StepPlan& plan, std::span<uint64_t> answers) {
  if (auto ok = tables_.apply(plan); !ok) return ok;
  for (const BlockCopy& block_copy : plan.copies) copy(block_copy);
  // Rows of a step run side by side: none may count on what another one of the step overwrites.
  for (const PlanRow& row : plan.rows) spoil(row);
  size_t from = 0;
  for (const PlanRow& row : plan.rows) {
    const auto count = static_cast<size_t>(row.num_tokens);
    run_row(row, std::span(plan.tokens).subspan(from, count), answers.subspan(from, count));
    from += count;
  }
  return std::monostate{};
}

}  // namespace headrace
