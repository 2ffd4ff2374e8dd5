#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "engine/simulated_scheduling.h"

namespace headrace {
namespace {

class UnbalancedScheduling final : public SimulatedScheduling {
 public:
  UnbalancedScheduling(const SchedulerConfig& config, CacheManager& cache) : config_(config), cache_(cache) {
    turns_.resize(static_cast<size_t>(std::max(1, config.steps_in_flight)));
  }

  bool add(SequenceId id, SequenceSpec spec) override {
    if (!cache_.fits(spec.max_len, spec.max_len)) return false;
    waiting_.push_back(id);
    sequences_[id].spec = std::move(spec);
    return true;
  }

  void append(SequenceId id, TokenId token) override { sequences_.at(id).spec.tokens.push_back(token); }

  void finish(SequenceId id) override {
    const auto found = sequences_.find(id);
    if (found->second.has_blocks) {
      cache_.close(id);
      std::erase(turns_[found->second.turn].sequences, id);
      retired_.push_back(id);
    } else {
      std::erase(waiting_, id);
    }
    sequences_.erase(found);
  }

  std::optional<StepPlan> compose() override {
    for (size_t i = 0; i < turns_.size(); ++i) {
      const size_t turn = (next_turn_ + i) % turns_.size();
      if (turns_[turn].is_out) continue;
      take_in(turn);
      StepPlan plan;
      add_rows(turns_[turn], true, plan);
      if (plan.rows.empty()) add_rows(turns_[turn], false, plan);
      if (plan.rows.empty()) continue;
      plan.step_id = StepId{++steps_};
      plan.retired = std::exchange(retired_, {});
      turns_[turn].is_out = true;
      out_.push_back(turn);
      next_turn_ = turn + 1;
      return plan;
    }
    return std::nullopt;
  }

  void complete(const StepResult&) override {
    turns_[out_.front()].is_out = false;
    out_.pop_front();
  }

  int32_t steps_in_flight_limit() const override { return static_cast<int32_t>(turns_.size()); }

  SchedulerFigures figures() const override {
    return {.running = static_cast<int64_t>(sequences_.size() - waiting_.size()),
            .waiting = static_cast<int64_t>(waiting_.size()),
            .steps = static_cast<int64_t>(steps_),
            .in_flight = static_cast<int32_t>(out_.size()),
            .in_flight_limit = steps_in_flight_limit()};
  }

 private:
  struct Sequence {
    SequenceSpec spec;
    bool has_blocks = false;  // else it waits
    int32_t computed = 0;
    size_t turn = 0;
  };
  struct Turn {
    std::vector<SequenceId> sequences;
    bool is_out = false;
  };

  /// Sequences start in this turn as long as a step has room for their prompts.
  void take_in(size_t turn) {
    int64_t room = config_.max_step_tokens;
    while (!waiting_.empty() && room > 0) {
      const SequenceId id = waiting_.front();
      Sequence& sequence = sequences_.at(id);
      if (static_cast<int32_t>(sequences_.size() - waiting_.size()) >= config_.max_num_seqs) return;
      (void)cache_.open(id, sequence.spec.tokens, 0);
      if (!cache_.reserve(id, sequence.spec.max_len)) {
        cache_.close(id);
        return;
      }
      sequence.has_blocks = true;
      sequence.turn = turn;
      turns_[turn].sequences.push_back(id);
      room -= static_cast<int64_t>(sequence.spec.tokens.size());
      waiting_.pop_front();
    }
  }

  /// All that is not computed of the prompts, or of the others, in the order of arrival.
  void add_rows(const Turn& turn, bool prompts, StepPlan& plan) {
    for (const SequenceId id : turn.sequences) {
      Sequence& sequence = sequences_.at(id);
      const auto length = static_cast<int32_t>(sequence.spec.tokens.size());
      const int32_t room = config_.max_step_tokens - static_cast<int32_t>(plan.tokens.size());
      const int32_t count = std::min(length - sequence.computed, room);
      if (count <= 0 || (length - sequence.computed > 1) != prompts) continue;
      const int32_t first = std::exchange(sequence.computed, sequence.computed + count);
      plan.rows.push_back({.sequence = id,
                           .first_pos = first,
                           .num_tokens = count,
                           .num_outputs = sequence.computed == length ? 1 : 0});
      const auto from = sequence.spec.tokens.begin() + first;
      plan.tokens.insert(plan.tokens.end(), from, from + count);
      if (first > 0) continue;
      for (int32_t group = 0; group < config_.num_groups; ++group) {
        const std::span<const BlockId> table = cache_.table(id, group);
        plan.table_changes.push_back(
            {.sequence = id, .group = group, .base_blocks = 0, .blocks = {table.begin(), table.end()}});
      }
    }
  }

  SchedulerConfig config_;
  CacheManager& cache_;
  std::map<SequenceId, Sequence> sequences_;
  std::deque<SequenceId> waiting_;
  std::vector<Turn> turns_;
  size_t next_turn_ = 0;
  std::deque<size_t> out_;  // turns of the steps that are out, the oldest first
  std::vector<SequenceId> retired_;
  uint64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<SimulatedScheduling> unbalanced_scheduling(const SchedulerConfig& config, CacheManager& cache) {
  return std::make_unique<UnbalancedScheduling>(config, cache);
}

}  // namespace headrace
