#include "sched/residents.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace headrace {
namespace {

/// Blocks that every running sequence should find for its growth, unless it ends before, when another one starts.
constexpr int32_t kHeadroomBlocks = 2;
/// Blocks that are taken at once for a sequence that is expected to need them, where there are plenty: fewer changes of
/// tables.
constexpr int32_t kBlocksAhead = 4;

}  // namespace

int64_t Residents::outstanding(const Sequence& sequence) noexcept {
  return std::max(sequence.claimed - sequence.reserved, 0);
}

int32_t Residents::whole_blocks(int32_t tokens) const noexcept {
  return (tokens + config_.block_tokens - 1) / config_.block_tokens * config_.block_tokens;
}

int32_t Residents::with_growth(const Sequence& sequence, int32_t end) const noexcept {
  return whole_blocks(std::min(sequence.spec.max_len, end + kHeadroomBlocks * config_.block_tokens));
}

bool Residents::try_start(Sequence& sequence) {
  const bool alone = running_.empty();
  if (static_cast<int64_t>(running_.size()) >= config_.max_num_seqs) return false;
  const int64_t available = cache_.available_tokens();
  if (!alone && refusal_.sequence == sequence.id && available <= refusal_.available &&
      departures_ == refusal_.departures) {
    return false;
  }
  // What is found in the cache is not computed, so it has no outputs: those asked for bound the search.
  const auto searched = static_cast<size_t>(std::min(sequence.length(), sequence.next_output + 1));
  const int32_t found = cache_.open(sequence.id, std::span(sequence.spec.tokens).first(searched), sequence.spec.salt);
  const int32_t prompt = std::min(sequence.length() - found, config_.max_prompt_claim);
  const int32_t claimed = with_growth(sequence, found + prompt);
  if (!alone && cache_.available_tokens() < claimed - found + promised_) {
    cache_.close(sequence.id);
    refusal_ = {sequence.id, available, departures_};
    return false;
  }
  if (!sequence.started) sequence.cached_tokens = found;
  enter(sequence, found);
  sequence.claimed = claimed;
  promised_ += outstanding(sequence);
  return true;
}

bool Residents::try_fork(const Sequence& parent, Sequence& child) {
  if (parent.state() != SequenceState::kRunning || parent.computed == 0) return false;
  if (static_cast<int64_t>(running_.size()) >= config_.max_num_seqs) return false;
  const std::optional<std::vector<BlockCopy>> copies = cache_.fork(parent.id, child.id, parent.computed);
  if (!copies) return false;
  // Copies of one plan must not read what others of it write: no copies of copies.
  const auto is_written = [&](const BlockCopy& copy) {
    return std::ranges::any_of(
        copies_, [&](const BlockCopy& earlier) { return earlier.group == copy.group && earlier.to == copy.from; });
  };
  if (std::ranges::any_of(*copies, is_written)) {
    cache_.close(child.id);
    return false;
  }
  copies_.insert(copies_.end(), copies->begin(), copies->end());
  enter(child, parent.computed);
  child.cached_tokens = parent.computed;
  if (parent.decoding) begin_decoding(child);
  return true;
}

void Residents::enter(Sequence& sequence, int32_t computed) {
  queues_.remove(sequence);
  sequence.change_state(SequenceState::kRunning);
  running_.insert(&sequence);
  sequence.computed = computed;
  sequence.reserved = computed;
}

bool Residents::reserve(Sequence& sequence, int32_t end) {
  const int64_t before = outstanding(sequence);
  const int32_t ahead = std::min(sequence.spec.expected_len, end + kBlocksAhead * config_.block_tokens);
  const auto plenty = static_cast<int64_t>(running_.size()) * 2 * kBlocksAhead * config_.block_tokens;
  const bool is_plenty = ahead > end && cache_.available_tokens() - promised_ > plenty;
  if (!cache_.reserve(sequence.id, end, is_plenty ? ahead : 0)) return false;
  sequence.reserved = whole_blocks(end);
  sequence.claimed = std::max(sequence.claimed, with_growth(sequence, sequence.reserved));
  promised_ += outstanding(sequence) - before;
  return true;
}

bool Residents::grow(Sequence& sequence, int32_t end, uint64_t step) {
  if (end <= sequence.reserved) return true;
  while (!reserve(sequence, end)) {
    Sequence* victim = choose_victim(sequence, step);
    if (victim == nullptr) {
      // Alone and still short: the cache keeps the same tokens a second time, for another sequence wrote them before.
      // It begins again with those.
      if (running_.size() == 1) preempt(sequence);
      return false;
    }
    preempt(*victim);
  }
  return true;
}

Sequence* Residents::choose_victim(const Sequence& taker, uint64_t step) const {
  for (auto it = running_.rbegin(); it != running_.rend() && taker.before(**it); ++it) {
    if ((*it)->last_step != step) return *it;
  }
  return nullptr;
}

void Residents::preempt(Sequence& sequence) {
  log_info("scheduler: blocks are short: sequence {} gives back those of {} tokens, to be computed again",
           raw(sequence.id), sequence.computed);
  ++preemptions_;
  leave(sequence);
  sequence.change_state(SequenceState::kPreempted);
  queues_.place(sequence);
}

void Residents::begin_decoding(Sequence& sequence) {
  sequence.decoding = true;
  ++decodes_.decode_rows;
  decodes_.attended_keys += sequence.length();
  decodes_.read_keys += sequence.length();
}

void Residents::leave(Sequence& sequence) {
  cache_.close(sequence.id);
  running_.erase(&sequence);
  queues_.remove(sequence);
  ++departures_;
  promised_ -= outstanding(sequence);
  if (sequence.decoding) {
    --decodes_.decode_rows;
    decodes_.attended_keys -= sequence.length();
    decodes_.read_keys -= sequence.length();
  }
  if (!sequence.announced.empty()) retired_.push_back(sequence.id);
}

void Residents::restart() {
  for (Sequence* sequence : std::vector<Sequence*>(running_.begin(), running_.end())) {
    leave(*sequence);
    sequence->change_state(SequenceState::kWaiting);
  }
  cache_.clear_prefixes();
  retired_.clear();
  copies_.clear();
}

void Residents::tell(StepPlan& plan) {
  plan.retired = std::move(retired_);
  plan.copies = std::move(copies_);
  retired_.clear();
  copies_.clear();
}

}  // namespace headrace
