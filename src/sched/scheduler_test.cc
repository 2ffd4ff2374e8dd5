#include "sched/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "sched/fake_stage.h"

namespace headrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr StageCost kEven{
    .fixed = 1, .per_decode_row = 1, .per_prompt_token = 0.1, .per_attended_key = 1e-9, .per_read_key = 0};

std::vector<TokenId> counted(int32_t n) {
  std::vector<TokenId> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), 0);
  for (TokenId& token : tokens) token %= 1000;  // the stage's vocabulary
  return tokens;
}

/// A scheduler with a cache, a stage and steps in flight; results come when the test says so.
class Rig {
 public:
  explicit Rig(SchedulerConfig config, int32_t blocks = 64)
      : cache_({.groups = {{.num_blocks = blocks}}, .block_tokens = 16, .prefix_caching = true}),
        scheduler_(std::move(config), cache_, clock_),
        stage_({.num_groups = 1,
                .group_blocks = {blocks},
                .block_tokens = 16,
                .vocab_size = 1000,
                .max_tokens = 4096,
                .max_seq_len = 1 << 20},
               {0}) {}

  /// The sequence will finish at its max_len.
  Admit add(uint64_t id, SequenceSpec spec) {
    limits_[SequenceId{id}] = spec.max_len;
    return scheduler_.add(SequenceId{id}, std::move(spec));
  }
  Admit add(uint64_t id, int32_t tokens, int32_t max_len = 0) {
    return add(id, {.tokens = counted(tokens), .max_len = std::max(tokens, max_len)});
  }
  /// The rows of the next step, by number of sequence; empty: there is none.
  std::vector<uint64_t> compose() {
    std::optional<StepPlan> plan = scheduler_.compose();
    if (!plan) return {};
    plans_.push_back(*plan);
    StepResult result;
    const auto ok = stage_.run(*plan, result);
    EXPECT_TRUE(ok) << (ok ? "" : ok.error().message());
    results_.push_back(std::move(result));
    std::vector<uint64_t> rows;
    for (const PlanRow& row : plan->rows) rows.push_back(raw(row.sequence));
    return rows;
  }
  /// The oldest step comes back: its sequences go on, or finish at their max_len.
  void receive() {
    const StepResult result = std::move(results_.front());
    results_.pop_front();
    scheduler_.complete(result);
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      const OutputRow& row = result.outputs[i];
      if (!scheduler_.contains(row.sequence)) continue;
      const std::span<const TokenId> tokens = scheduler_.tokens(row.sequence);
      EXPECT_EQ(result.tokens[i], stage_.reference(tokens.first(static_cast<size_t>(row.position) + 1)));
      if (row.position + 1 != static_cast<int32_t>(tokens.size())) continue;
      if (limits_.at(row.sequence) == static_cast<int32_t>(tokens.size())) {
        scheduler_.finish(row.sequence);
        finished_.push_back(raw(row.sequence));
      } else {
        scheduler_.append(row.sequence, result.tokens[i]);
      }
    }
  }
  /// Keeps up to D steps out until `steps` were composed, or nothing is left to do.
  void run(int32_t steps) {
    for (int32_t composed = 0; composed < steps;) {
      const bool room = static_cast<int32_t>(results_.size()) < scheduler_.steps_in_flight_limit();
      if (room && !compose().empty()) {
        ++composed;
      } else if (!results_.empty()) {
        receive();
      } else {
        return;
      }
    }
  }
  void finish_at(uint64_t id, int32_t length) { limits_[SequenceId{id}] = length; }

  [[nodiscard]] const StepPlan& plan(size_t index) const { return plans_[index]; }
  [[nodiscard]] const std::vector<StepPlan>& plans() const { return plans_; }
  [[nodiscard]] const std::vector<uint64_t>& finished() const { return finished_; }
  [[nodiscard]] size_t out() const { return results_.size(); }
  Scheduler& scheduler() { return scheduler_; }
  CacheManager& cache() { return cache_; }
  FakeClock& clock() { return clock_; }
  void lose_results() { results_.clear(); }

 private:
  FakeClock clock_;
  CacheManager cache_;
  Scheduler scheduler_;
  FakeStage stage_;
  std::vector<StepPlan> plans_;
  std::deque<StepResult> results_;
  std::map<SequenceId, int32_t> limits_;
  std::vector<uint64_t> finished_;
};

SchedulerConfig even(int32_t steps_in_flight) {
  return {.max_step_tokens = 256, .steps_in_flight = steps_in_flight, .stage_costs = {kEven}};
}

/// `rows` sequences that decode, each with a token to compute; nothing is in flight.
void decode(Rig& rig, uint64_t rows) {
  for (uint64_t id = 1; id <= rows; ++id) ASSERT_EQ(rig.add(id, 4, 500), Admit::kYes);
  while (!rig.compose().empty()) continue;
  while (rig.out() > 0) rig.receive();
}

TEST(Scheduler, CutsPromptsIntoChunksAndAsksForTheLastOutput) {
  Rig rig({.max_step_tokens = 16, .max_chunk_tokens = 7});
  ASSERT_EQ(rig.add(1, 10, 12), Admit::kYes);
  rig.compose();
  EXPECT_THAT(rig.plan(0).rows, ElementsAre(PlanRow{SequenceId{1}, 0, 7, 0}));
  rig.compose();  // the first chunk is still in flight
  EXPECT_THAT(rig.plan(1).rows, ElementsAre(PlanRow{SequenceId{1}, 7, 3, 1}));
  EXPECT_THAT(rig.plan(1).tokens, ElementsAre(7, 8, 9));
  EXPECT_THAT(rig.compose(), IsEmpty());
  rig.receive();
  EXPECT_THAT(rig.compose(), IsEmpty());
  rig.receive();
  rig.compose();
  EXPECT_THAT(rig.plan(2).rows, ElementsAre(PlanRow{SequenceId{1}, 10, 1, 1}));
}

TEST(Scheduler, AsksForOutputsFromAPositionOnEvenIfItIsCached) {
  Rig rig({.step_target_seconds = 1});
  ASSERT_EQ(rig.add(1, 50), Admit::kYes);
  rig.compose();
  ASSERT_EQ(rig.add(2, {.tokens = counted(50), .max_len = 50, .output_from = 20}), Admit::kYes);
  ASSERT_EQ(rig.add(3, 50), Admit::kYes);
  rig.compose();
  EXPECT_THAT(rig.plan(1).rows, ElementsAre(PlanRow{SequenceId{2}, 16, 34, 30}, PlanRow{SequenceId{3}, 48, 2, 1}));
  EXPECT_EQ(rig.scheduler().cached_tokens(SequenceId{3}), 48);
  rig.receive();
  rig.receive();
}

TEST(Scheduler, AsksForAFewOutputsOfPromptsAtOnce) {
  Rig rig({.max_step_tokens = 64, .max_prompt_outputs = 10});
  ASSERT_EQ(rig.add(1, {.tokens = counted(40), .max_len = 40, .output_from = 5}), Admit::kYes);
  ASSERT_EQ(rig.add(2, {.tokens = counted(40), .max_len = 40, .output_from = 0, .salt = 1}), Admit::kYes);
  ASSERT_EQ(rig.add(3, {.tokens = counted(30), .max_len = 30, .salt = 2}), Admit::kYes);
  rig.compose();
  EXPECT_THAT(rig.plan(0).rows, ElementsAre(PlanRow{SequenceId{1}, 0, 15, 10}, PlanRow{SequenceId{3}, 0, 30, 1}));
  rig.run(20);
  EXPECT_THAT(rig.finished(), UnorderedElementsAre(1, 2, 3));
  std::map<SequenceId, int64_t> outputs;
  for (const StepPlan& plan : rig.plans()) {
    EXPECT_LE(num_outputs(plan), 12) << "a last output of two prompts may come on top";
    for (const PlanRow& row : plan.rows) outputs[row.sequence] += row.num_outputs;
  }
  EXPECT_THAT(outputs,
              ElementsAre(std::pair(SequenceId{1}, 35), std::pair(SequenceId{2}, 40), std::pair(SequenceId{3}, 1)));
}

TEST(Scheduler, FindsHowManyTokensAStepIsWorth) {
  const auto tokens_with = [](double fixed) {
    const StageCost cost{.fixed = fixed, .per_decode_row = 1, .per_prompt_token = 0.1, .per_attended_key = 1e-9};
    Rig rig({.max_step_tokens = 512, .find_step_tokens = true, .stage_costs = {cost}}, 256);
    EXPECT_EQ(rig.add(1, 1000, 1001), Admit::kYes);
    rig.compose();
    EXPECT_EQ(rig.plan(0).rows[0].num_tokens, rig.scheduler().figures().prompt_step_tokens);
    return rig.plan(0).rows[0].num_tokens;
  };
  EXPECT_EQ(tokens_with(2), 384) << "380 x 0.1 of 40 seconds would be the tokens'; in whole tiles of 16";
  EXPECT_EQ(tokens_with(0.01), 128) << "the least";
  EXPECT_EQ(tokens_with(100), 512) << "the most";
}

TEST(Scheduler, OneStepInFlightTakesAllDecodeRows) {
  for (const uint64_t rows : {1u, 2u, 3u}) {
    Rig rig(even(1));
    decode(rig, rows);
    EXPECT_EQ(rig.compose().size(), rows);
    EXPECT_THAT(rig.compose(), IsEmpty());
  }
}

TEST(Scheduler, SharesRowsAmongStepsInFlight) {
  Rig rig(even(4));
  decode(rig, 1);
  EXPECT_THAT(rig.compose(), ElementsAre(1));
  EXPECT_THAT(rig.compose(), IsEmpty());

  Rig more(even(4));
  decode(more, 5);  // one more than steps: the row that crosses the quarter is taken
  EXPECT_THAT(more.compose(), ElementsAre(1, 2));
  EXPECT_THAT(more.compose(), ElementsAre(3, 4));
  EXPECT_THAT(more.compose(), ElementsAre(5));
  EXPECT_THAT(more.compose(), IsEmpty());
}

TEST(Scheduler, ThreeRowsInTwoStepsStayWithinOneStepForEver) {
  Rig rig(even(2));
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(rig.add(id, 4, 300), Admit::kYes);
  for (int i = 0; i < 400; ++i) {
    rig.run(1);
    const auto length = [&](uint64_t id) { return std::ssize(rig.scheduler().tokens(SequenceId{id})); };
    const auto [least, most] = std::minmax({length(1), length(2), length(3)});
    ASSERT_LE(most - least, 1) << "after step " << i;
  }
}

TEST(Scheduler, PromptsNeverHoldDecodeRowsBackForMoreThanAStep) {
  SchedulerConfig config = even(1);
  config.max_step_tokens = 128;
  Rig rig(std::move(config), 256);
  decode(rig, 4);
  const size_t before = rig.plans().size();
  ASSERT_EQ(rig.add(9, 3500, 3600), Admit::kYes);
  rig.run(60);
  int32_t chunks = 0;
  for (size_t i = before; i < rig.plans().size(); ++i) {
    std::set<uint64_t> rows;
    for (const PlanRow& row : rig.plan(i).rows) rows.insert(raw(row.sequence));
    for (const uint64_t id : {1, 2, 3, 4}) EXPECT_TRUE(rows.contains(id)) << "step " << i;
    chunks += static_cast<int32_t>(rows.contains(9));
    // 4 rows take 1 + 4 s: with a prompt at most twice that, so 50 tokens of 0.1 s; twice 1 + 5 s when it will soon be
    // the fifth.
    // The nearest tile of 16 tokens may end up to 8 later.
    EXPECT_LE(rig.plan(i).tokens.size(), i < before + 10 ? 4u + 55u + 8u : 4u + 70u + 8u) << "step " << i;
  }
  EXPECT_EQ(rig.scheduler().state(SequenceId{9}), SequenceState::kRunning);
  EXPECT_GE(chunks, 20);
}

TEST(Scheduler, ChunksBesideDecodeRowsFillTilesOfSixteenTokens) {
  Rig rig(even(1), 512);
  decode(rig, 5);
  const size_t before = rig.plans().size();
  ASSERT_EQ(rig.add(9, 3500, 3600), Admit::kYes);
  rig.run(30);
  int64_t tokens = 0;
  for (size_t i = before; i < rig.plans().size(); ++i) {
    EXPECT_EQ(rig.plan(i).tokens.size() % 16, 0) << "step " << i;
    tokens += std::ssize(rig.plan(i).tokens);
  }
  // 5 rows take 1 + 5 s, which leaves 60 tokens of 0.1 s; 70 where the prompt counts as the sixth.
  EXPECT_NEAR(static_cast<double>(tokens) / 30, 5 + 65, 8) << "no shorter than without tiles, on average";
}

TEST(Scheduler, AFurtherChunkFillsTheTileThatTheEndOfAPromptBegan) {
  Rig rig(even(1), 512);
  decode(rig, 5);
  // The target is twice 1 + 5 + 2 s, so there are 100 tokens of 0.1 s.
  ASSERT_EQ(rig.add(8, {.tokens = counted(85), .max_len = 200, .salt = 8}), Admit::kYes);
  ASSERT_EQ(rig.add(9, {.tokens = counted(95), .max_len = 200, .salt = 9}), Admit::kYes);
  EXPECT_THAT(rig.compose(), ElementsAre(1, 2, 3, 4, 5, 8, 9));
  EXPECT_EQ(rig.plans().back().rows.back().num_tokens, 6) << "5 + 85 + 6 tokens are 6 tiles";
}

TEST(Scheduler, NoTileIsFilledWhereThatWouldTakeTooLong) {
  constexpr StageCost kDear{.fixed = 1, .per_decode_row = 1, .per_prompt_token = 1, .per_attended_key = 1e-9};
  for (const uint64_t rows : {1u, 2u, 7u, 15u}) {
    Rig rig({.max_step_tokens = 256, .steps_in_flight = 1, .stage_costs = {kDear}}, 512);
    decode(rig, rows);
    ASSERT_EQ(rig.add(99, 3500, 3600), Admit::kYes);
    const double seconds = rig.scheduler().figures().step_target_seconds;
    rig.compose();
    EXPECT_LE(static_cast<double>(1 + rig.plans().back().tokens.size()), 1.25 * seconds) << rows << " rows";
  }
}

TEST(Scheduler, ShortPromptsThatWaitCountAsRowsThatDecode) {
  const auto target_beside = [](int32_t tokens, int32_t blocks) {
    Rig rig(even(1), blocks);
    decode(rig, 4);
    for (uint64_t id = 10; id < 22; ++id) EXPECT_EQ(rig.add(id, tokens, tokens + 100), Admit::kYes);
    return rig.scheduler().figures().step_target_seconds;
  };
  EXPECT_NEAR(target_beside(100, 256), 2 * (1 + 4 + 12), 0.1);
  EXPECT_NEAR(target_beside(1600, 1600), 2 * (1 + 4 + 12 / 2), 0.1) << "160 s each, which are twice 16 steps of 5 s";
  EXPECT_NEAR(target_beside(100, 40), 2 * (1 + 4 + 5.76), 0.1) << "of 640 tokens in the cache 64 are taken";
}

TEST(Scheduler, AloneAPromptTakesTheWholeBudget) {
  Rig rig(even(1));
  ASSERT_EQ(rig.add(1, 600), Admit::kYes);
  rig.compose();
  EXPECT_EQ(rig.plan(0).tokens.size(), 256u);
}

TEST(Scheduler, ShortPromptsJoinInOneStep) {
  Rig rig(even(1));
  for (uint64_t id = 1; id <= 5; ++id) ASSERT_EQ(rig.add(id, 60), Admit::kYes);
  EXPECT_THAT(rig.compose(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(rig.plan(0).tokens.size(), 256u);  // 4 x 60 and 16 of the fifth
}

TEST(Scheduler, AllRowsMayEndAtOnce) {
  Rig rig(even(2));
  decode(rig, 3);
  for (uint64_t id = 1; id <= 3; ++id) rig.finish_at(id, 5);
  rig.run(10);
  EXPECT_THAT(rig.finished(), UnorderedElementsAre(1, 2, 3));
  EXPECT_THAT(rig.compose(), IsEmpty());
  EXPECT_EQ(rig.cache().figures().used_blocks, 0);
  ASSERT_EQ(rig.add(7, 4, 10), Admit::kYes);
  EXPECT_THAT(rig.compose(), ElementsAre(7));
  EXPECT_EQ(rig.plans().back().retired.size(), 3u);
}

TEST(Scheduler, BlocksForTwoServeThirtyTwoOfFullLength) {
  Rig rig({.max_step_tokens = 64}, 32);  // 512 tokens
  for (uint64_t id = 1; id <= 32; ++id) {
    std::vector<TokenId> tokens = counted(40);
    tokens[0] = static_cast<TokenId>(id);
    ASSERT_EQ(rig.add(id, {.tokens = tokens, .max_len = 250}), Admit::kYes);
    rig.finish_at(id, 250);
  }
  EXPECT_EQ(rig.add(99, 20, 513), Admit::kTooLong);
  rig.run(20000);
  EXPECT_EQ(rig.finished().size(), 32u);
  EXPECT_GT(rig.scheduler().figures().preemptions, 0);
  // Every token at least once: 32 x 249. What preemption makes of that is thrash if it is much more.
  int64_t computed = 0;
  for (const StepPlan& plan : rig.plans()) computed += std::ssize(plan.tokens);
  EXPECT_LT(computed, 2 * 32 * 249);
  EXPECT_EQ(rig.cache().figures().used_blocks, 0);
}

TEST(Scheduler, BoundsTheQueue) {
  Rig rig({.max_queue = 2});
  EXPECT_EQ(rig.add(1, 5), Admit::kYes);
  EXPECT_EQ(rig.add(2, 5), Admit::kYes);
  EXPECT_EQ(rig.add(3, 5), Admit::kQueueFull);
  rig.compose();  // both start
  EXPECT_EQ(rig.add(3, 5), Admit::kYes);

  Rig tokens({.max_queued_tokens = 100});
  EXPECT_EQ(tokens.add(1, 300), Admit::kYes);  // or it could never come in
  EXPECT_EQ(tokens.add(2, 1), Admit::kQueuedTokensFull);
  tokens.scheduler().finish(SequenceId{1});
  EXPECT_EQ(tokens.add(2, 60), Admit::kYes);
  EXPECT_EQ(tokens.add(3, 41), Admit::kQueuedTokensFull);
  EXPECT_EQ(tokens.add(4, 40), Admit::kYes);
  EXPECT_EQ(tokens.scheduler().figures().queued_tokens, 100);
}

TEST(Scheduler, StartsByPriorityThenFirstCome) {
  Rig rig({.max_num_seqs = 1});
  const auto add = [&](uint64_t id, int32_t priority) {
    ASSERT_EQ(rig.add(id, {.tokens = counted(4), .max_len = 4, .priority = priority}), Admit::kYes);
    rig.finish_at(id, 4);
  };
  add(1, 1);
  add(2, 0);
  add(3, 0);
  add(4, -1);
  rig.run(10);
  EXPECT_THAT(rig.finished(), ElementsAre(4, 2, 3, 1));
}

TEST(Scheduler, LowPrioritiesDoNotStarve) {
  Rig rig({.max_num_seqs = 1});
  ASSERT_EQ(rig.add(1, {.tokens = counted(4), .max_len = 4, .priority = 5}), Admit::kYes);
  rig.finish_at(1, 4);
  for (uint64_t id = 2; id < 60; ++id) {
    ASSERT_EQ(rig.add(id, 4, 4), Admit::kYes);
    ASSERT_EQ(rig.add(id + 100, 4, 4), Admit::kYes);  // twice as many come as can be served
    rig.finish_at(id, 4);
    rig.finish_at(id + 100, 4);
    rig.run(1);
    while (rig.out() > 0) rig.receive();
  }
  EXPECT_THAT(rig.finished(), ::testing::Contains(1u));
}

TEST(Scheduler, TenantsTakeTurnsWhateverTheyAskFor) {
  Rig rig({.max_step_tokens = 32, .max_num_seqs = 4}, 512);
  for (uint64_t id = 1; id <= 10; ++id) {
    ASSERT_EQ(rig.add(id, {.tokens = counted(320), .max_len = 320, .tenant = TenantId{1}}), Admit::kYes);
    rig.finish_at(id, 320);
  }
  for (uint64_t id = 11; id <= 13; ++id) {
    ASSERT_EQ(rig.add(id, {.tokens = counted(64), .max_len = 64, .tenant = TenantId{2}, .salt = id}), Admit::kYes);
    rig.finish_at(id, 64);
  }
  rig.run(14);  // half of these steps are the second tenant's: its 6 are among them
  while (rig.out() > 0) rig.receive();
  EXPECT_THAT(rig.finished(), ::testing::IsSupersetOf({11u, 12u, 13u}));
}

TEST(Scheduler, PreemptsTheYoungestOfTheLowestPriority) {
  Rig rig({}, 8);  // 128 tokens
  ASSERT_EQ(rig.add(1, {.tokens = counted(30), .max_len = 128, .priority = 1, .salt = 1}), Admit::kYes);
  rig.compose();
  ASSERT_EQ(rig.add(2, {.tokens = counted(30), .max_len = 128, .priority = 0, .salt = 2}), Admit::kYes);
  rig.compose();
  ASSERT_EQ(rig.scheduler().figures().running, 2);
  while (rig.scheduler().figures().preemptions == 0) {
    while (rig.out() > 0) rig.receive();
    rig.compose();
  }
  EXPECT_EQ(rig.scheduler().state(SequenceId{1}), SequenceState::kPreempted);
  EXPECT_EQ(rig.scheduler().state(SequenceId{2}), SequenceState::kRunning);
  rig.finish_at(2, 100);
  rig.finish_at(1, 128);
  rig.run(1000);
  EXPECT_THAT(rig.finished(), ElementsAre(2, 1));
}

TEST(Scheduler, AloneItBeginsAgainWithWhatAnotherOneWroteBefore) {
  Rig rig({}, 8);
  // Both write the same prompt, in one step; the first one's blocks are those that are found, and kept for the second.
  ASSERT_EQ(rig.add(1, 48, 48), Admit::kYes);
  ASSERT_EQ(rig.add(2, 48, 120), Admit::kYes);
  EXPECT_THAT(rig.compose(), ElementsAre(1, 2));
  rig.run(200);
  EXPECT_THAT(rig.finished(), ElementsAre(1, 2));
  EXPECT_EQ(rig.scheduler().figures().preemptions, 1);
}

TEST(Scheduler, CancelsInEveryState) {
  Rig rig({.max_num_seqs = 1});
  ASSERT_EQ(rig.add(1, 40, 80), Admit::kYes);
  ASSERT_EQ(rig.add(2, 40, 80), Admit::kYes);
  rig.scheduler().finish(SequenceId{2});  // waiting
  rig.compose();
  rig.scheduler().finish(SequenceId{1});  // running, in flight
  EXPECT_EQ(rig.cache().figures().used_blocks, 0);
  rig.receive();
  EXPECT_THAT(rig.compose(), IsEmpty());
  EXPECT_EQ(rig.scheduler().figures().running + rig.scheduler().figures().waiting, 0);
}

TEST(Scheduler, NamesTheExpiredOnce) {
  Rig rig({.max_num_seqs = 1});
  ASSERT_EQ(rig.add(1, {.tokens = counted(4), .max_len = 9, .queue_deadline = 5, .deadline = 20}), Admit::kYes);
  ASSERT_EQ(rig.add(2, {.tokens = counted(4), .max_len = 9, .queue_deadline = 5}), Admit::kYes);
  rig.compose();
  rig.clock().seconds = 5;
  EXPECT_THAT(rig.scheduler().take_expired(), IsEmpty());
  rig.clock().seconds = 6;
  EXPECT_THAT(rig.scheduler().take_expired(), ElementsAre(SequenceId{2}));  // the first has started
  EXPECT_THAT(rig.scheduler().take_expired(), IsEmpty());
  rig.clock().seconds = 21;
  EXPECT_THAT(rig.scheduler().take_expired(), ElementsAre(SequenceId{1}));
}

TEST(Scheduler, ForksShareBlocksAndCopyTheLast) {
  Rig rig({});
  ASSERT_EQ(rig.add(1, 40, 60), Admit::kYes);
  rig.compose();
  rig.receive();
  const int64_t used = rig.cache().figures().used_blocks;
  rig.scheduler().fork(SequenceId{1}, SequenceId{2}, {.max_len = 60});
  rig.scheduler().append(SequenceId{2}, 7);
  EXPECT_EQ(rig.scheduler().state(SequenceId{2}), SequenceState::kRunning);
  EXPECT_EQ(rig.cache().figures().used_blocks, used + 1);
  EXPECT_THAT(rig.compose(), ElementsAre(1, 2));
  EXPECT_EQ(rig.plans().back().copies.size(), 1u);
  rig.finish_at(1, 60);
  rig.finish_at(2, 60);
  rig.run(100);
  EXPECT_THAT(rig.finished(), UnorderedElementsAre(1, 2));
}

TEST(Scheduler, AForkWithoutRoomIsComputedAnew) {
  Rig rig({.max_num_seqs = 1});
  ASSERT_EQ(rig.add(1, 40, 45), Admit::kYes);
  rig.compose();
  rig.receive();
  rig.scheduler().fork(SequenceId{1}, SequenceId{2}, {.max_len = 45});
  EXPECT_EQ(rig.scheduler().state(SequenceId{2}), SequenceState::kWaiting);
  rig.scheduler().append(SequenceId{2}, 7);
  rig.finish_at(1, 45);
  rig.finish_at(2, 45);
  rig.run(100);
  EXPECT_THAT(rig.finished(), ElementsAre(1, 2));
}

TEST(Scheduler, ARestartKeepsTokensAndAsksForWhatWasLost) {
  Rig rig(even(2));
  decode(rig, 3);
  rig.compose();
  rig.compose();
  rig.receive();
  rig.lose_results();
  rig.scheduler().restart(EpochId{1});
  EXPECT_EQ(rig.cache().figures().used_blocks, 0);
  EXPECT_EQ(rig.scheduler().figures().waiting, 3);
  for (uint64_t id = 1; id <= 3; ++id) rig.finish_at(id, 20);
  rig.run(200);
  EXPECT_THAT(rig.finished(), UnorderedElementsAre(1, 2, 3));
  EXPECT_EQ(rig.plans().back().epoch, EpochId{1});
}

}  // namespace
}  // namespace headrace
