#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sched/clock.h"
#include "step/block_tables.h"

namespace headrace {

/// For tests: a clock that is set.
struct FakeClock final : Clock {
  double seconds = 0;
  [[nodiscard]] double now() const override { return seconds; }
};

/// For tests: a stage whose cache holds a number for each position, made of the token and the position, and whose
/// outputs are tokens made of all numbers that a position sees through the block tables. A wrong block, a missing copy
/// or a block written too early shows as a wrong token.
class FakeStage {
 public:
  FakeStage(const PlanLimits& limits, std::vector<int32_t> windows)
      : limits_(limits), windows_(std::move(windows)), tables_(limits) {
    for (const int32_t blocks : limits_.group_blocks) {
      slabs_.emplace_back(static_cast<size_t>(blocks) * static_cast<size_t>(limits_.block_tokens), 0);
    }
  }

  /// Runs the step; an error is the plan's.
  [[nodiscard]] Result<std::monostate> run(const StepPlan& plan, StepResult& result) {
    if (auto ok = tables_.apply(plan); !ok) return ok;
    for (const BlockCopy& copy : plan.copies) {
      std::vector<uint64_t>& slab = slabs_[static_cast<size_t>(copy.group)];
      for (int32_t i = 0; i < limits_.block_tokens; ++i) slab[place(copy.to, i)] = slab[place(copy.from, i)];
    }
    // All rows write before any reads, as layers do: a block that one row still reads must not be another's already.
    const TokenId* token = plan.tokens.data();
    for (const PlanRow& row : plan.rows) {
      for (int32_t i = 0; i < row.num_tokens; ++i) write(row.sequence, row.first_pos + i, *token++);
    }
    result = StepResult();
    result.epoch = plan.epoch;
    result.step_id = plan.step_id;
    for (const PlanRow& row : plan.rows) {
      const int32_t end = row.first_pos + row.num_tokens;
      for (int32_t position = end - row.num_outputs; position < end; ++position) {
        result.outputs.push_back({row.sequence, position});
        result.tokens.push_back(output(row.sequence, position));
      }
    }
    return std::monostate{};
  }

  /// The token that must come after `tokens`.
  [[nodiscard]] TokenId reference(std::span<const TokenId> tokens) const {
    const auto position = static_cast<int32_t>(tokens.size()) - 1;
    uint64_t sum = 0;
    for (const int32_t window : windows_) {
      for (int32_t i = first_seen(position, window); i <= position; ++i) {
        sum = mix(sum, key(tokens[static_cast<size_t>(i)], i));
      }
    }
    return static_cast<TokenId>(sum % static_cast<uint64_t>(limits_.vocab_size));
  }

 private:
  static uint64_t mix(uint64_t sum, uint64_t value) {
    return (sum ^ value) * 0x9E3779B97F4A7C15u + (sum >> 29);  // any odd constant that spreads bits would do
  }
  static uint64_t key(TokenId token, int32_t position) {
    return mix(static_cast<uint64_t>(token) + 1, static_cast<uint64_t>(position) + 1);
  }
  static int32_t first_seen(int32_t position, int32_t window) {
    return window > 0 && position >= window ? position - window + 1 : 0;
  }
  [[nodiscard]] size_t place(BlockId block, int32_t offset) const {
    return static_cast<size_t>(raw(block) * limits_.block_tokens + offset);
  }
  [[nodiscard]] uint64_t& at(SequenceId sequence, size_t group, int32_t position) {
    const BlockId block =
        tables_.table(sequence, static_cast<int32_t>(group))[static_cast<size_t>(position / limits_.block_tokens)];
    return slabs_[group][place(block, position % limits_.block_tokens)];
  }
  void write(SequenceId sequence, int32_t position, TokenId token) {
    for (size_t group = 0; group < windows_.size(); ++group) at(sequence, group, position) = key(token, position);
  }
  [[nodiscard]] TokenId output(SequenceId sequence, int32_t position) {
    uint64_t sum = 0;
    for (size_t group = 0; group < windows_.size(); ++group) {
      for (int32_t i = first_seen(position, windows_[group]); i <= position; ++i)
        sum = mix(sum, at(sequence, group, i));
    }
    return static_cast<TokenId>(sum % static_cast<uint64_t>(limits_.vocab_size));
  }

  PlanLimits limits_;
  std::vector<int32_t> windows_;
  BlockTables tables_;
  std::vector<std::vector<uint64_t>> slabs_;
};

}  // namespace headrace
