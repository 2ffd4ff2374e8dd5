#include "engine/simulated_executor.h"

#include "engine/simulated_model.h"

namespace headrace {

SimulatedExecutor::SimulatedExecutor(const SimulatedMachine& machine, VirtualClock& clock)
    : machine_(machine), clock_(clock) {
  check_machine(machine_);
  for (size_t i = 0; i < machine_.stages.size(); ++i) stages_.emplace_back(machine_);
  stage_free_.resize(machine_.stages.size());
  link_free_.resize(machine_.links.size());
}

StepTimes SimulatedExecutor::pass(const StepPlan& plan) {
  StepTimes times{.step_id = plan.step_id,
                  .work = step_work(machine_, plan),
                  .rows = static_cast<int32_t>(plan.rows.size()),
                  .submitted = clock_.now(),
                  .stages = {},
                  .links = {}};
  double there = clock_.now();
  for (size_t i = 0; i < stages_.size(); ++i) {
    const double begin = std::max(there, stage_free_[i]);
    stage_free_[i] = begin + simulated_seconds(machine_.stages[i], times.work);
    times.stages.push_back({begin, stage_free_[i]});
    const bool is_last = i + 1 == stages_.size();
    const double bytes = is_last ? machine_.output_bytes * static_cast<double>(times.work.outputs)
                                 : machine_.token_bytes * static_cast<double>(times.work.tokens);
    const SimulatedLink& link = machine_.links[i];
    const double sent = std::max(stage_free_[i], link_free_[i]);
    link_free_[i] = sent + bytes * link.seconds_per_byte;
    there = link_free_[i] + link.latency;
    times.links.push_back({sent, link_free_[i]});
  }
  times.done = there;
  return times;
}

Result<std::monostate> SimulatedExecutor::compute(const StepPlan& plan, StepResult& result) {
  std::vector<uint64_t> answers(plan.tokens.size());
  std::vector<uint64_t> own(plan.tokens.size());
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    if (auto ok = stages_[stage].run(plan, own); !ok) return ok;
    // Stages hold the same numbers, each in its own cache: the answer is that of one stage as long as all agree.
    for (size_t i = 0; i < own.size(); ++i) {
      answers[i] = stage == 0 || answers[i] == own[i] ? own[i] : simulated_mix(answers[i] ^ own[i]);
    }
  }
  size_t end = 0;
  for (const PlanRow& row : plan.rows) {
    end += static_cast<size_t>(row.num_tokens);
    for (int32_t i = row.num_outputs; i > 0; --i) {
      result.outputs.push_back({.sequence = row.sequence, .position = row.first_pos + row.num_tokens - i});
      const uint64_t answer = answers[end - static_cast<size_t>(i)];
      result.tokens.push_back(static_cast<TokenId>(answer % static_cast<uint64_t>(machine_.vocab_size)));
    }
  }
  return std::monostate{};
}

void SimulatedExecutor::submit(StepPlan plan) {
  Pending& pending = pending_.emplace_back();
  pending.result.epoch = plan.epoch;
  pending.result.step_id = plan.step_id;
  pending.outcome = compute(plan, pending.result);
  times_.push_back(pass(plan));
  const StepTimes& times = times_.back();
  for (const BusySpan& span : times.stages) pending.result.stage_seconds.push_back(span.end - span.begin);
  pending.done = times.done;
  taken_at_ = times.stages[0].begin;
}

std::optional<double> SimulatedExecutor::next_result_at() const noexcept {
  if (pending_.empty()) return std::nullopt;
  return pending_.front().done;
}

Result<std::monostate> SimulatedExecutor::receive(StepResult& result) {
  HR_CHECK(!pending_.empty(), "no step is outstanding");
  Pending pending = std::move(pending_.front());
  pending_.pop_front();
  clock_.advance_to(pending.done);
  result = std::move(pending.result);
  return pending.outcome;
}

}  // namespace headrace
