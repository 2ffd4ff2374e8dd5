#include "sched/composer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace headrace {
namespace {

/// A step with prompts should take twice what decode rows alone take, or so much longer where that is little: a prompt
/// in chunks of a few tokens takes for ever, and nobody reads a token in a hundredth of a second.
constexpr double kTargetRatio = 2.0;
constexpr double kTargetExtraSeconds = 0.012;
/// It should hardly ever take three times as long, or so much longer: where steps often take longer than predicted,
/// they are made shorter.
constexpr double kLimitRatio = 3.0;
constexpr double kLimitExtraSeconds = 0.025;
constexpr double kLeastTargetRatio = 1.25;
/// Prompts that so many decode steps could read count as if they decoded already. Where steps were as short as the few
/// that decode allow, the others would wait for a long time, while each step pays its fixed cost for few rows.
constexpr double kSoonSteps = 16;

/// A step of prompts alone is long enough where its tokens come at this share of the rate of an endless one.
constexpr double kWorthwhileRate = 0.95;
constexpr int32_t kLeastStepTokens = 128;

/// AMX computes the tokens of a step in tiles of so many, and takes nearly as long for one token as for a full tile.
/// Where time bounds a chunk, it ends with a tile. On other processors that costs nothing and gains nothing.
constexpr int64_t kTileTokens = 16;

/// After so many starts of others, the sequence that waits longest gets the priority of the next.
constexpr int32_t kMostOvertakings = 16;

/// Tokens of the longest chunk of at most `most` that fills the last tile of a step which has `taken` tokens; 0: none.
int64_t chunk_to_tile(int64_t taken, int64_t most) noexcept {
  return std::max<int64_t>((taken + most) / kTileTokens * kTileTokens - taken, 0);
}

double whole_tiles(double tokens) noexcept { return std::round(tokens / kTileTokens) * kTileTokens; }

}  // namespace

void Composer::fill(Step& step, int32_t steps_in_flight) {
  members_.clear();
  const double target = target_seconds(steps_in_flight);
  take_decodes(step, steps_in_flight);
  take_prompts(step, steps_in_flight, target);
  // Only now: what the step writes may not be found, and what it still reads not be freed, within the step itself.
  for (Sequence* sequence : members_) {
    cache_.submitted(sequence->id, sequence->spec.tokens, sequence->computed);
    queues_.place(*sequence);
  }
}

double Composer::target_seconds(int32_t steps_in_flight) const noexcept {
  const StepLoad& decodes = residents_.decodes();
  if (decodes.decode_rows == 0) return std::numeric_limits<double>::infinity();
  if (config_.step_target_seconds > 0) return config_.step_target_seconds;
  const StageCost& cost = costs_.slowest();
  const double present = cost.fixed + cost.marginal(decodes) / steps_in_flight;
  const double rows = 1 + soon_decoding(present) / static_cast<double>(decodes.decode_rows);
  const double decoding = cost.fixed + cost.marginal(decodes) * rows / steps_in_flight;
  const double target = std::max(kTargetRatio * decoding, decoding + kTargetExtraSeconds / steps_in_flight);
  const double limit = std::max(kLimitRatio * decoding, decoding + kLimitExtraSeconds / steps_in_flight);
  return std::max(std::min(target, limit / costs_.late_ratio()), kLeastTargetRatio * decoding);
}

double Composer::soon_decoding(double step_seconds) const noexcept {
  const auto prompts = static_cast<double>(queues_.waiting().size() + queues_.prompts().size());
  if (prompts == 0) return 0;
  const StepLoad& decodes = residents_.decodes();
  const double tokens = static_cast<double>(queues_.waiting().tokens() + queues_.prompts().tokens()) / prompts;
  const double soon = std::min(1.0, kSoonSteps * step_seconds / (tokens * costs_.slowest().per_prompt_token));
  // Those for which there is room, where they become as long as those that run.
  const double length =
      std::max(tokens, static_cast<double>(decodes.attended_keys) / static_cast<double>(decodes.decode_rows));
  const double room = std::min(static_cast<double>(cache_.available_tokens()) / length,
                               static_cast<double>(config_.max_num_seqs) - static_cast<double>(decodes.decode_rows));
  return std::min(prompts * soon, std::max(room, 0.0));
}

void Composer::take_decodes(Step& step, int32_t steps_in_flight) {
  const StageCost& cost = costs_.slowest();
  // Equal rows must add up to their equal share whatever the rounding.
  const double share = cost.marginal(residents_.decodes()) / steps_in_flight * (1 - 1e-9);
  double taken = 0;
  for (Sequence* sequence = queues_.decodes().front(); sequence != nullptr;) {
    if (taken >= share || static_cast<int32_t>(step.plan.tokens.size()) >= config_.max_step_tokens) return;
    if (!residents_.grow(*sequence, sequence->length(), step.number)) {
      sequence = sequence->next_decode;  // it stays the oldest served, or was preempted
      continue;
    }
    Sequence* next = sequence->next_decode;
    StepLoad row;
    row.add_decode(sequence->computed);
    taken += cost.marginal(row);
    add_row(step, *sequence, 1);
    sequence = next;
  }
}

Sequence* Composer::next_to_start() {
  PromptQueue& waiting = queues_.waiting();
  Sequence* next = waiting.front();
  if (next == nullptr || overtakings_ < kMostOvertakings) return next;
  overtakings_ = 0;
  Sequence* oldest = waiting.oldest();
  if (oldest->spec.priority <= next->spec.priority) return next;
  queues_.remove(*oldest);
  oldest->spec.priority = next->spec.priority;
  queues_.place(*oldest);
  return waiting.front();
}

int64_t Composer::timely_tokens(const Step& step, double target, int32_t first_pos) const noexcept {
  if (std::isinf(target)) return std::numeric_limits<int32_t>::max();
  const StageCost& cost = costs_.slowest();
  const int64_t tokens = cost.chunk_for(target - cost.seconds(step.load), first_pos);
  // The nearest tile, so that chunks are no shorter on average; but short ones are hardly made longer, or the step
  // would take far longer than it may.
  const auto taken = static_cast<int64_t>(step.plan.tokens.size());
  const int64_t chunk = chunk_to_tile(taken, tokens + std::min(tokens / 4, kTileTokens / 2));
  if (step.load.prompt_tokens > 0) return chunk;
  return std::max<int64_t>(chunk > tokens / 2 ? chunk : tokens, 1);  // however late, prompts get on
}

int32_t Composer::worthwhile_tokens() const noexcept {
  if (!config_.find_step_tokens) return config_.max_step_tokens;
  const StageCost& cost = costs_.slowest();
  const double tokens = kWorthwhileRate / (1 - kWorthwhileRate) * cost.fixed / cost.per_prompt_token;
  const int32_t least = std::min(kLeastStepTokens, config_.max_step_tokens);
  return static_cast<int32_t>(std::clamp<double>(whole_tiles(tokens), least, config_.max_step_tokens));
}

int64_t Composer::returned_tokens(const Sequence& sequence, int64_t outputs) noexcept {
  if (sequence.next_output + 1 >= sequence.length()) return sequence.remaining();
  return std::max(sequence.next_output - sequence.computed, 0) + outputs;
}

int64_t Composer::pipelined_tokens(int32_t steps_in_flight) const noexcept {
  const auto stages = static_cast<double>(costs_.num_stages());
  const Sequence* first =
      queues_.prompts().oldest() != nullptr ? queues_.prompts().oldest() : queues_.waiting().oldest();
  if (stages == 1 || steps_in_flight == 1 || first == nullptr) return worthwhile_tokens();
  // n chunks of T tokens pass S stages in (n + S - 1) (fixed + T / n * cost): least at n = sqrt((S - 1) T cost /
  // fixed).
  const StageCost& cost = costs_.slowest();
  const double tokens = first->length();
  const double token_cost = cost.per_prompt_token + cost.per_attended_key * tokens / 2;
  const double best = std::sqrt(tokens * cost.fixed / ((stages - 1) * token_cost));
  return static_cast<int64_t>(std::clamp<double>(whole_tiles(best), config_.block_tokens, worthwhile_tokens()));
}

void Composer::take_prompts(Step& step, int32_t steps_in_flight, double target) {
  const bool decodes = residents_.decodes().decode_rows > 0;
  const int64_t most = decodes ? config_.max_step_tokens : pipelined_tokens(steps_in_flight);
  const int32_t most_in_chunk = config_.max_chunk_tokens > 0 ? config_.max_chunk_tokens : config_.max_step_tokens;
  std::vector<Sequence*> passed;  // no room for them in this step
  bool may_start = true;
  bool began_again = false;
  int64_t prompt_outputs = 0;
  for (;;) {
    const int64_t left = most - static_cast<int64_t>(step.plan.tokens.size());
    if (left <= 0) break;
    Sequence* sequence = queues_.prompts().front();
    Sequence* starter = may_start ? next_to_start() : nullptr;
    if (sequence == nullptr && starter == nullptr) break;
    if (starter != nullptr && (sequence == nullptr || queues_.waiting().goes_before(*starter, *sequence))) {
      if (timely_tokens(step, target, 0) == 0) break;
      if (!residents_.try_start(*starter)) {
        may_start = false;
        continue;
      }
      ++overtakings_;
      sequence = starter;
    } else {
      queues_.remove(*sequence);
    }
    // From here on it is in no queue, so the step takes it once.
    const int64_t timely = timely_tokens(step, target, sequence->computed);
    const int64_t returned = returned_tokens(*sequence, config_.max_prompt_outputs - prompt_outputs);
    const int64_t tokens = std::min<int64_t>({sequence->remaining(), left, most_in_chunk, timely, returned});
    if (tokens == 0 || !residents_.grow(*sequence, sequence->computed + static_cast<int32_t>(tokens), step.number)) {
      if (tokens > 0 && sequence->state() == SequenceState::kPreempted) {
        may_start = !std::exchange(began_again, true);
        continue;
      }
      passed.push_back(sequence);
      if (timely == 0) break;
      continue;
    }
    const int64_t first_output = sequence->next_output - sequence->computed;
    if (sequence->next_output + 1 < sequence->length()) prompt_outputs += std::max<int64_t>(tokens - first_output, 0);
    tenants_.advance(tenants_.served(sequence->spec.tenant));
    add_row(step, *sequence, static_cast<int32_t>(tokens));
  }
  for (Sequence* sequence : passed) queues_.place(*sequence);
}

void Composer::add_row(Step& step, Sequence& sequence, int32_t num_tokens) {
  const int32_t first = sequence.computed;
  const int32_t end = first + num_tokens;
  StepPlan& plan = step.plan;
  plan.rows.push_back({.sequence = sequence.id,
                       .first_pos = first,
                       .num_tokens = num_tokens,
                       .num_outputs = std::clamp(end - std::max(first, sequence.next_output), 0, num_tokens)});
  const auto tokens = sequence.spec.tokens.begin();
  plan.tokens.insert(plan.tokens.end(), tokens + first, tokens + end);
  add_table_changes(plan, sequence);

  StepLoad row;
  if (sequence.decoding && num_tokens == 1) {
    row.add_decode(first);
  } else {
    row.add_chunk(first, num_tokens);
  }
  step.load.add(row);
  tenants_.charge(sequence.spec.tenant, costs_.slowest().marginal(row));

  sequence.computed = end;
  sequence.next_output = std::max(sequence.next_output, end);
  sequence.last_step = step.number;
  if (sequence.remaining() == 0 && !sequence.decoding) residents_.begin_decoding(sequence);
  queues_.remove(sequence);
  members_.push_back(&sequence);
}

void Composer::add_table_changes(StepPlan& plan, Sequence& sequence) const {
  sequence.announced.resize(static_cast<size_t>(config_.num_groups), 0);
  for (int32_t group = 0; group < config_.num_groups; ++group) {
    const std::span<const BlockId> table = cache_.table(sequence.id, group);
    int32_t& announced = sequence.announced[static_cast<size_t>(group)];
    const auto entries = static_cast<int32_t>(table.size());
    if (entries == announced) continue;
    plan.table_changes.push_back({.sequence = sequence.id,
                                  .group = group,
                                  .base_blocks = announced,
                                  .blocks = {table.begin() + announced, table.end()}});
    announced = entries;
  }
}

}  // namespace headrace
