// Random histories of the scheduler, with a stage whose tokens depend on what its blocks hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "base/property_test.h"
#include "sched/fake_stage.h"
#include "sched/scheduler.h"

namespace headrace {
namespace {

constexpr int32_t kBlock = 4;
constexpr int32_t kMostTokens = 40;  // of a sequence
constexpr int32_t kVocab = 50;

/// Any of the numbers, in the first histories too.
int32_t draw(int32_t from, int32_t to) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, to + 1)); }

class History {
 public:
  History() : History(draw(1, 2) == 1 ? std::vector<int32_t>{0} : std::vector<int32_t>{0, draw(1, 12)}) {}

  void act() {
    const int32_t action = draw(0, 99);
    if (action < 15) {
      add();
    } else if (action < 18 && !live_.empty()) {
      finish(pick());
    } else if (action < 25) {
      clock_.seconds += draw(1, 5);
      for (const SequenceId id : scheduler_.take_expired()) {
        RC_ASSERT(live_.contains(id));
        RC_ASSERT(live_.at(id).first_deadline < clock_.seconds);
        finish(id);
      }
    } else if (action < 26) {
      restart();
    } else if (action < 65) {
      compose();
    } else {
      receive();
    }
  }

  /// Everyone finishes, in a number of steps that recomputing every token a few times would take, and all blocks are
  /// free again.
  void drain() {
    for (int32_t i = 0; !live_.empty(); ++i) {
      RC_ASSERT(i < 40000);
      if (!compose()) {
        RC_ASSERT(!results_.empty());  // else nobody would ever go on
        receive();
      }
    }
    RC_ASSERT(cache_.figures().used_blocks == 0);
    RC_ASSERT(scheduler_.figures().running == 0 && scheduler_.figures().waiting == 0);
  }

 private:
  struct Live {
    int32_t max_len = 0;
    int32_t priority = 0;
    int32_t next_output = 0;  // position of the next output that must come
    double first_deadline = kNoDeadline;
    std::map<SequenceId, int32_t> passed_by{};  // since it was ready: rows of its priority that went before
  };

  explicit History(std::vector<int32_t> windows)
      : config_{.num_groups = static_cast<int32_t>(windows.size()),
                .block_tokens = kBlock,
                .max_step_tokens = draw(3, 30),
                .max_chunk_tokens = draw(0, 2) == 0 ? draw(1, 9) : 0,
                .max_num_seqs = draw(1, 8),
                .max_queue = draw(5, 30),
                .max_queued_tokens = draw(50, 500),
                .steps_in_flight = draw(1, 4)},
        blocks_(draw(12, 40)),
        cache_(cache_config(windows, blocks_, draw(0, 3) > 0)),
        scheduler_(config_, cache_, clock_),
        stage_({.num_groups = config_.num_groups,
                .group_blocks = std::vector<int32_t>(windows.size(), blocks_),
                .block_tokens = kBlock,
                .vocab_size = kVocab,
                .max_tokens = config_.max_step_tokens,
                .max_seq_len = kMostTokens},
               windows) {}

  static CacheConfig cache_config(const std::vector<int32_t>& windows, int32_t blocks, bool prefixes) {
    CacheConfig config{.groups = {}, .block_tokens = kBlock, .prefix_caching = prefixes};
    for (const int32_t window : windows) config.groups.push_back({.num_blocks = blocks, .window = window});
    return config;
  }

  SequenceId pick() const { return std::next(live_.begin(), draw(0, static_cast<int32_t>(live_.size()) - 1))->first; }

  void add() {
    // Beginnings are often the same, so that they are found in the cache.
    const int32_t length = draw(1, kMostTokens);
    const int32_t common = draw(0, length);
    SequenceSpec spec{.max_len = draw(length, kMostTokens), .priority = draw(0, 2), .tenant = TenantId{}};
    for (int32_t i = 0; i < length; ++i) spec.tokens.push_back(i < common ? i : draw(0, kVocab - 1));
    spec.tenant = static_cast<TenantId>(draw(0, 2));
    spec.salt = static_cast<uint64_t>(draw(0, 5) / 5);
    spec.expected_len = draw(0, 1) * spec.max_len;
    if (draw(0, 3) == 0) spec.output_from = draw(0, length - 1);
    if (draw(0, 9) == 0) spec.queue_deadline = clock_.seconds + draw(1, 9);
    if (draw(0, 9) == 0) spec.deadline = clock_.seconds + draw(1, 30);
    Live live{.max_len = spec.max_len, .priority = spec.priority};
    live.next_output = spec.output_from < 0 ? length - 1 : spec.output_from;
    live.first_deadline = std::min(spec.queue_deadline, spec.deadline);
    const SequenceId id{next_++};
    const SchedulerFigures before = scheduler_.figures();
    const Admit admit = scheduler_.add(id, std::move(spec));
    if (admit == Admit::kYes) {
      live_.emplace(id, std::move(live));
    } else {
      RC_ASSERT(admit == Admit::kQueueFull || admit == Admit::kQueuedTokensFull || admit == Admit::kTooLong);
      RC_ASSERT(before.waiting > 0 || admit == Admit::kTooLong);
    }
  }

  void finish(SequenceId id) {
    scheduler_.finish(id);
    live_.erase(id);
  }

  /// n > 1: another sequence goes on with another token.
  void fork(SequenceId parent, TokenId token) {
    const Live& from = live_.at(parent);
    const SequenceId id{next_++};
    scheduler_.fork(parent, id, {.max_len = from.max_len, .priority = from.priority});
    scheduler_.append(id, (token + 1) % kVocab);
    Live live{.max_len = from.max_len, .priority = from.priority, .next_output = from.next_output};
    live_.emplace(id, std::move(live));
  }

  void restart() {
    epoch_ = EpochId{raw(epoch_) + 1};
    results_.clear();
    scheduler_.restart(epoch_);
    for (auto& [id, live] : live_) live.passed_by.clear();
    RC_ASSERT(cache_.figures().used_blocks == 0);
  }

  bool compose() {
    if (static_cast<int32_t>(results_.size()) >= scheduler_.steps_in_flight_limit()) return false;
    const std::optional<StepPlan> plan = scheduler_.compose();
    if (!plan) return false;
    RC_ASSERT(plan->epoch == epoch_);
    RC_ASSERT(static_cast<int32_t>(plan->tokens.size()) <= config_.max_step_tokens);
    RC_ASSERT(scheduler_.figures().running <= config_.max_num_seqs);
    for (const PlanRow& row : plan->rows) {
      RC_ASSERT(live_.contains(row.sequence));
      if (config_.max_chunk_tokens > 0) RC_ASSERT(row.num_tokens <= config_.max_chunk_tokens);
    }
    count_passed(*plan);
    StepResult result;
    const auto ok = stage_.run(*plan, result);
    if (!ok) RC_FAIL(std::string(ok.error().what()));
    results_.push_back(std::move(result));
    return true;
  }

  /// A row that is ready to decode and has room is passed over by another one of its priority once at most.
  void count_passed(const StepPlan& plan) {
    std::vector<SequenceId> served;
    for (const PlanRow& row : plan.rows) {
      live_.at(row.sequence).passed_by.clear();
      if (ready_.erase(row.sequence) > 0) served.push_back(row.sequence);
    }
    const bool room = cache_.available_tokens() > 0;
    for (auto it = ready_.begin(); it != ready_.end();) {
      if (!live_.contains(*it) || scheduler_.state(*it) != SequenceState::kRunning) {
        it = ready_.erase(it);
        continue;
      }
      Live& waits = live_.at(*it++);
      if (!room) continue;
      for (const SequenceId id : served) {
        if (live_.at(id).priority == waits.priority) RC_ASSERT(++waits.passed_by[id] <= 1);
      }
    }
  }

  void receive() {
    if (results_.empty()) return;
    const StepResult result = std::move(results_.front());
    results_.pop_front();
    scheduler_.complete(result);
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      const OutputRow& row = result.outputs[i];
      const auto found = live_.find(row.sequence);
      if (found == live_.end()) continue;
      const std::span<const TokenId> tokens = scheduler_.tokens(row.sequence);
      RC_ASSERT(row.position == found->second.next_output);
      RC_ASSERT(result.tokens[i] == stage_.reference(tokens.first(static_cast<size_t>(row.position) + 1)));
      ++found->second.next_output;
      const auto length = static_cast<int32_t>(tokens.size());
      if (row.position + 1 != length) continue;
      if (length == found->second.max_len || draw(0, 30) == 0) {
        finish(row.sequence);
      } else {
        for (int32_t forks = draw(0, 19) - 17; forks > 0; --forks) fork(row.sequence, result.tokens[i]);
        scheduler_.append(row.sequence, result.tokens[i]);
        if (scheduler_.state(row.sequence) == SequenceState::kRunning) ready_.insert(row.sequence);
      }
    }
  }

  SchedulerConfig config_;
  int32_t blocks_;
  FakeClock clock_;
  CacheManager cache_;
  Scheduler scheduler_;
  FakeStage stage_;
  std::map<SequenceId, Live> live_;
  std::set<SequenceId> ready_;  // with a token to decode
  std::deque<StepResult> results_;
  EpochId epoch_{};
  uint64_t next_ = 1;
};

TEST(SchedulerProperty, EveryoneFinishesWithTheRightTokens) {
  EXPECT_TRUE(holds_for_histories([] {
    History history;
    const int32_t actions = draw(0, 300);
    for (int32_t i = 0; i < actions; ++i) history.act();
    history.drain();
  }));
}

}  // namespace
}  // namespace headrace
