#include "sched/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace headrace {

Scheduler::Scheduler(SchedulerConfig config, CacheManager& cache, const Clock& clock)
    : config_(std::move(config)),
      cache_(cache),
      clock_(clock),
      queues_(tenants_),
      residents_(config_, cache_, queues_),
      costs_(config_.stage_costs),
      composer_(config_, cache_, queues_, residents_, tenants_, costs_),
      depth_(config_.steps_in_flight, config_.max_steps_in_flight) {
  choose_steps_in_flight();
}

Admit Scheduler::add(SequenceId id, SequenceSpec spec) {
  HR_CHECK(!spec.tokens.empty() && spec.tokens.size() <= static_cast<size_t>(spec.max_len), "sequence ", raw(id),
           " begins with ", spec.tokens.size(), " tokens, may have ", spec.max_len);
  if (!cache_.fits(spec.max_len, config_.max_step_tokens)) return Admit::kTooLong;
  const auto tokens = static_cast<int64_t>(spec.tokens.size());
  const PromptQueue& queue = queues_.waiting();
  if (static_cast<int64_t>(queue.size()) >= config_.max_queue) return Admit::kQueueFull;
  // Alone in the queue, any prompt is welcome: refusing it would be for ever.
  if (queue.size() > 0 && tokens > config_.max_queued_tokens - queue.tokens()) return Admit::kQueuedTokensFull;
  queues_.place(insert(id, std::move(spec)));
  choose_steps_in_flight();
  return Admit::kYes;
}

Sequence& Scheduler::insert(SequenceId id, SequenceSpec spec) {
  auto [entry, is_new] = sequences_.try_emplace(id, nullptr);
  HR_CHECK(is_new, "sequence ", raw(id), " is there already");
  entry->second = std::make_unique<Sequence>(id, ++arrivals_, std::move(spec));
  tenants_.enter(entry->second->spec.tenant);
  deadlines_.add(*entry->second);
  return *entry->second;
}

void Scheduler::fork(SequenceId parent_id, SequenceId child_id, SequenceSpec spec) {
  const Sequence& parent = at(parent_id);
  HR_CHECK(spec.tokens.empty() && spec.max_len >= parent.length() && spec.max_len <= parent.spec.max_len, "sequence ",
           raw(child_id), " forks with ", spec.tokens.size(), " tokens of its own and may have ", spec.max_len);
  spec.tokens = parent.spec.tokens;
  spec.salt = parent.spec.salt;
  Sequence& child = insert(child_id, std::move(spec));
  child.next_output = parent.next_output;
  child.received_output = parent.next_output;
  (void)residents_.try_fork(parent, child);
  queues_.place(child);
}

void Scheduler::append(SequenceId id, TokenId token) {
  Sequence& sequence = at(id);
  HR_CHECK(sequence.length() < sequence.spec.max_len, "sequence ", raw(id), " has all its ", sequence.spec.max_len,
           " tokens");
  sequence.spec.tokens.push_back(token);
  residents_.appended(sequence);
  queues_.place(sequence);
}

void Scheduler::finish(SequenceId id) {
  Sequence& sequence = at(id);
  if (sequence.state() == SequenceState::kRunning) residents_.leave(sequence);
  sequence.change_state(SequenceState::kFinished);
  queues_.place(sequence);
  deadlines_.erase(sequence);
  tenants_.leave(sequence.spec.tenant);
  sequences_.erase(id);
}

std::optional<StepPlan> Scheduler::compose() {
  Composer::Step step{.plan = {}, .load = {}, .number = steps_ + 1};
  composer_.fill(step, depth_.limit());
  if (step.plan.rows.empty()) return std::nullopt;
  steps_ = step.number;
  last_step_tokens_ = std::ssize(step.plan.tokens);
  step_tokens_ += last_step_tokens_;
  step.plan.epoch = epoch_;
  step.plan.step_id = StepId{step.number};
  residents_.tell(step.plan);
  out_.push_back({.step = step.plan.step_id,
                  .load = step.load,
                  .composed_at = clock_.now(),
                  .steps_out = static_cast<int32_t>(out_.size()) + 1});
  return std::move(step.plan);
}

void Scheduler::complete(const StepResult& result) {
  if (result.epoch != epoch_) return;
  HR_CHECK(!out_.empty() && out_.front().step == result.step_id, "result of step ", raw(result.step_id),
           " out of order");
  const Out out = out_.front();
  out_.pop_front();
  for (const OutputRow& row : result.outputs) {
    const auto found = sequences_.find(row.sequence);
    if (found != sequences_.end()) found->second->received_output = row.position + 1;
  }
  costs_.learn(out.load, result.stage_seconds);
  depth_.measured(clock_.now() - out.composed_at, result.stage_seconds, out.steps_out);
  choose_steps_in_flight();
}

void Scheduler::choose_steps_in_flight() noexcept {
  depth_.choose(costs_, residents_.decodes(), queues_.prompts().size() + queues_.waiting().size() > 0,
                [this](int32_t steps) { return composer_.target_seconds(steps); });
}

std::vector<SequenceId> Scheduler::take_expired() { return deadlines_.take_expired(clock_.now()); }

void Scheduler::restart(EpochId epoch) {
  epoch_ = epoch;
  out_.clear();
  residents_.restart();
  for (const auto& [id, sequence] : sequences_) {
    if (sequence->state() == SequenceState::kPreempted) sequence->change_state(SequenceState::kWaiting);
    // What was asked for and did not come is asked for again.
    sequence->next_output = sequence->received_output;
    queues_.place(*sequence);
  }
}

SchedulerFigures Scheduler::figures() const noexcept {
  const StageCost& cost = costs_.slowest();
  const StepLoad& decodes = residents_.decodes();
  const PromptQueue& prompts = queues_.prompts();
  const PromptQueue& waiting = queues_.waiting();
  const auto num_prompts = static_cast<double>(std::max<size_t>(prompts.size() + waiting.size(), 1));
  const double mean_prompt = static_cast<double>(prompts.tokens() + waiting.tokens()) / num_prompts;
  return {.running = static_cast<int64_t>(residents_.size()),
          .waiting = static_cast<int64_t>(sequences_.size() - residents_.size()),
          .queued_tokens = waiting.tokens(),
          .unread_tokens = prompts.tokens(),
          .preemptions = residents_.preemptions(),
          .steps = static_cast<int64_t>(steps_),
          .step_tokens = step_tokens_,
          .last_step_tokens = last_step_tokens_,
          .prompt_step_tokens = composer_.worthwhile_tokens(),
          .in_flight = static_cast<int32_t>(out_.size()),
          .in_flight_limit = depth_.limit(),
          .step_target_seconds = decodes.decode_rows > 0 ? composer_.target_seconds(depth_.limit()) : 0.0,
          .cost_error = costs_.relative_error(),
          .prompt_token_seconds = cost.per_prompt_token + cost.per_attended_key * mean_prompt / 2,
          .decode_token_seconds =
              decodes.decode_rows > 0 ? cost.seconds(decodes) / static_cast<double>(decodes.decode_rows) : 0.0};
}

}  // namespace headrace
