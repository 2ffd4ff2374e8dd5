#include "sched/composer.h"

#include <algorithm>

#include "base/check.h"

namespace headrace {
namespace {

int32_t blocks_for(int32_t tokens, int32_t block_tokens) { return (tokens + block_tokens - 1) / block_tokens; }

}  // namespace

Composer::Composer(ComposerConfig config) : config_(std::move(config)) {
  for (const int32_t blocks : config_.group_blocks) pools_.emplace_back(blocks);
}

std::optional<SequenceId> Composer::add(std::vector<TokenId> tokens, int32_t max_len, int32_t output_from) {
  HR_CHECK(!tokens.empty() && max_len >= static_cast<int32_t>(tokens.size()), tokens.size(), " tokens, at most ",
           max_len);
  Sequence sequence{.tokens = std::move(tokens), .blocks = {}, .max_len = max_len, .output_from = output_from};
  const int32_t count = blocks_for(max_len, config_.block_tokens);
  for (const BlockPool& pool : pools_) {
    if (pool.free() < count) return std::nullopt;
  }
  for (BlockPool& pool : pools_) {
    std::vector<BlockId>& blocks = sequence.blocks.emplace_back();
    for (int32_t i = 0; i < count; ++i) blocks.push_back(pool.lease());
  }
  const SequenceId id{next_sequence_++};
  sequences_.emplace(id, std::move(sequence));
  return id;
}

void Composer::append(SequenceId id, TokenId token) {
  Sequence& sequence = sequences_.at(id);
  HR_CHECK(static_cast<int32_t>(sequence.tokens.size()) < sequence.max_len, "sequence ", raw(id), " is full");
  sequence.tokens.push_back(token);
}

void Composer::finish(SequenceId id) {
  const auto found = sequences_.find(id);
  HR_CHECK(found != sequences_.end(), "no sequence ", raw(id));
  for (size_t group = 0; group < pools_.size(); ++group) {
    for (const BlockId block : found->second.blocks[group]) pools_[group].release(block);
  }
  sequences_.erase(found);
  retired_.push_back(id);
}

void Composer::add_row(StepPlan& plan, SequenceId id, Sequence& sequence, int32_t budget) {
  const auto length = static_cast<int32_t>(sequence.tokens.size());
  const int32_t first = sequence.computed;
  const int32_t count = std::min({length - first, budget, config_.max_chunk_tokens});
  const int32_t end = first + count;
  plan.rows.push_back({.sequence = id,
                       .first_pos = first,
                       .num_tokens = count,
                       .num_outputs = std::clamp(end - std::max(first, sequence.output_from), 0, count)});
  plan.tokens.insert(plan.tokens.end(), sequence.tokens.begin() + first, sequence.tokens.begin() + end);
  const int32_t needed = blocks_for(end, config_.block_tokens);
  if (needed > sequence.announced) {
    for (size_t group = 0; group < pools_.size(); ++group) {
      const std::vector<BlockId>& blocks = sequence.blocks[group];
      plan.table_changes.push_back({.sequence = id,
                                    .group = static_cast<int32_t>(group),
                                    .base_blocks = sequence.announced,
                                    .blocks = {blocks.begin() + sequence.announced, blocks.begin() + needed}});
    }
    sequence.announced = needed;
  }
  sequence.computed = end;
}

std::optional<StepPlan> Composer::compose() {
  StepPlan plan;
  for (auto& [id, sequence] : sequences_) {
    const int32_t budget = config_.max_step_tokens - static_cast<int32_t>(plan.tokens.size());
    if (budget <= 0) break;
    if (sequence.computed < static_cast<int32_t>(sequence.tokens.size())) add_row(plan, id, sequence, budget);
  }
  if (plan.rows.empty()) return std::nullopt;
  plan.retired = std::move(retired_);
  retired_.clear();
  plan.step_id = StepId{next_step_++};
  return plan;
}

}  // namespace headrace
