#include "engine/simulated_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "engine/simulated_model.h"

namespace headrace {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr SequenceId kOne{1};
constexpr SequenceId kTwo{2};

SimulatedMachine machine_of(size_t stages, std::vector<int32_t> windows = {0}) {
  SimulatedMachine machine;
  machine.stages.assign(stages, {.fixed = 1, .per_token = 0.5});
  machine.links.resize(stages);
  for (const int32_t window : windows) machine.groups.push_back({.num_blocks = 32, .window = window});
  machine.block_tokens = 4;
  return machine;
}

std::vector<TokenId> counted(int32_t n, TokenId from = 100) {
  std::vector<TokenId> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

/// Makes plans of one row each, and keeps count of the steps.
class Plans {
 public:
  explicit Plans(size_t groups) : groups_(groups) {}
  /// Tokens [first, end) of a sequence, with an output for the last one; `blocks`: its whole table, in every group.
  StepPlan row(SequenceId sequence, const std::vector<TokenId>& tokens, int32_t first, int32_t end,
               const std::vector<int32_t>& blocks) {
    StepPlan plan;
    plan.step_id = StepId{next_++};
    plan.rows.push_back({.sequence = sequence, .first_pos = first, .num_tokens = end - first, .num_outputs = 1});
    plan.tokens.assign(tokens.begin() + first, tokens.begin() + end);
    for (size_t group = 0; group < groups_; ++group) {
      TableChange change{.sequence = sequence, .group = static_cast<int32_t>(group), .base_blocks = 0, .blocks = {}};
      for (const int32_t block : blocks) change.blocks.push_back(BlockId{block});
      plan.table_changes.push_back(std::move(change));
    }
    return plan;
  }

 private:
  size_t groups_;
  uint64_t next_ = 1;
};

TokenId run(SimulatedExecutor& executor, StepPlan plan) {
  executor.submit(std::move(plan));
  StepResult result;
  const auto ok = executor.receive(result);
  EXPECT_TRUE(ok) << (ok ? "" : ok.error().message());
  return result.tokens.empty() ? -1 : result.tokens.back();
}

TEST(SimulatedExecutor, GivesTheReferencesTokensInAnyChunksOnAnyStages) {
  const std::vector<TokenId> tokens = counted(23);
  const std::vector<int32_t> blocks{7, 3, 9, 1, 30, 2};
  for (const size_t stages : {1u, 2u, 5u, 16u}) {
    for (const std::vector<int32_t>& windows : {std::vector<int32_t>{0}, {0, 6}, {1}, {4, 0, 9}}) {
      const SimulatedMachine machine = machine_of(stages, windows);
      const TokenId expected = simulated_next(machine, tokens);
      for (const int32_t chunk : {1, 2, 3, 4, 5, 7, 16, 23}) {
        VirtualClock clock;
        SimulatedExecutor executor(machine, clock);
        Plans plans(windows.size());
        TokenId last = -1;
        for (int32_t first = 0; first < 23; first += chunk) {
          last = run(executor, plans.row(kOne, tokens, first, std::min(23, first + chunk), blocks));
        }
        EXPECT_EQ(last, expected) << stages << " stages, chunks of " << chunk << ", " << windows.size() << " groups";
      }
    }
  }
}

TEST(SimulatedExecutor, GivesAnOutputForEachPositionAskedFor) {
  const SimulatedMachine machine = machine_of(2);
  VirtualClock clock;
  SimulatedExecutor executor(machine, clock);
  Plans plans(1);
  const std::vector<TokenId> tokens = counted(6);
  StepPlan plan = plans.row(kOne, tokens, 0, 6, {0, 1});
  plan.rows[0].num_outputs = 3;
  executor.submit(std::move(plan));
  StepResult result;
  ASSERT_TRUE(executor.receive(result));
  EXPECT_EQ(result.width, 0);
  EXPECT_THAT(result.outputs, ElementsAre(OutputRow{kOne, 3}, OutputRow{kOne, 4}, OutputRow{kOne, 5}));
  EXPECT_THAT(result.tokens, ElementsAre(simulated_next(machine, counted(4)), simulated_next(machine, counted(5)),
                                         simulated_next(machine, counted(6))));
}

TEST(SimulatedExecutor, ShowsWrongBlocksAsWrongTokens) {
  const SimulatedMachine machine = machine_of(3, {0, 6});
  const std::vector<TokenId> tokens = counted(14);
  const std::vector<TokenId> others = counted(14, 500);
  const TokenId expected = simulated_next(machine, tokens);
  const std::vector<int32_t> blocks{0, 1, 2, 3};
  // Each fault happens between the first 13 tokens and the last one.
  const auto last_token_after = [&](const auto& fault, const std::vector<int32_t>& blocks_at_last) {
    VirtualClock clock;
    SimulatedExecutor executor(machine, clock);
    Plans plans(2);
    run(executor, plans.row(kOne, tokens, 0, 13, blocks));
    fault(executor, plans);
    return run(executor, plans.row(kOne, tokens, 13, 14, blocks_at_last));
  };
  const auto nothing = [](auto&, auto&) {};
  EXPECT_EQ(last_token_after(nothing, blocks), expected);
  EXPECT_NE(last_token_after(nothing, {0, 2, 1, 3}), expected) << "blocks in another order";
  EXPECT_NE(last_token_after(nothing, {0, 9, 2, 3}), expected) << "a block that was never written";
  const auto overwrite = [&](auto& executor, auto& plans) { run(executor, plans.row(kTwo, others, 0, 3, {1})); };
  EXPECT_NE(last_token_after(overwrite, blocks), expected) << "a block that another sequence got";
  const auto elsewhere = [&](auto& executor, auto& plans) { run(executor, plans.row(kTwo, others, 0, 3, {8})); };
  EXPECT_EQ(last_token_after(elsewhere, blocks), expected);
}

TEST(SimulatedExecutor, ShowsChunksInTheWrongOrderAsWrongTokens) {
  const SimulatedMachine machine = machine_of(1);
  const std::vector<TokenId> tokens = counted(12);
  VirtualClock clock;
  SimulatedExecutor executor(machine, clock);
  Plans plans(1);
  run(executor, plans.row(kOne, tokens, 4, 8, {0, 1, 2}));
  run(executor, plans.row(kOne, tokens, 0, 4, {0, 1, 2}));
  EXPECT_NE(run(executor, plans.row(kOne, tokens, 8, 12, {0, 1, 2})), simulated_next(machine, tokens));
}

TEST(SimulatedExecutor, CopiesBlocksBeforeTheStepAndAfterEarlierOnes) {
  const SimulatedMachine machine = machine_of(2);
  std::vector<TokenId> tokens = counted(6);
  VirtualClock clock;
  SimulatedExecutor executor(machine, clock);
  Plans plans(1);
  run(executor, plans.row(kOne, tokens, 0, 6, {0, 1}));
  tokens.push_back(77);
  StepPlan fork = plans.row(kTwo, tokens, 6, 7, {0, 5});
  fork.copies.push_back({.group = 0, .from = BlockId{1}, .to = BlockId{5}});
  EXPECT_EQ(run(executor, std::move(fork)), simulated_next(machine, tokens));
  tokens.back() = 78;
  EXPECT_EQ(run(executor, plans.row(kOne, tokens, 6, 7, {0, 1})), simulated_next(machine, tokens));
}

TEST(SimulatedExecutor, OverlapsStagesAndLinksOfStepsInFlight) {
  SimulatedMachine machine = machine_of(2);
  machine.stages[1] = {.fixed = 0, .per_token = 1, .per_key = 0.25, .per_output = 2};
  machine.links[0] = {.latency = 3, .seconds_per_byte = 0.1};
  machine.links[1] = {.latency = 1, .seconds_per_byte = 0.5};
  machine.token_bytes = 5;
  machine.output_bytes = 4;
  VirtualClock clock;
  SimulatedExecutor executor(machine, clock);
  Plans plans(1);
  const std::vector<TokenId> tokens = counted(4);
  EXPECT_TRUE(executor.can_take());
  executor.submit(plans.row(kOne, tokens, 0, 2, {0}));
  EXPECT_TRUE(executor.can_take()) << "the first stage is busy, but the next step would be its next";
  executor.submit(plans.row(kOne, tokens, 2, 4, {0}));
  EXPECT_FALSE(executor.can_take());
  EXPECT_DOUBLE_EQ(executor.takes_at(), 2);

  const StepTimes& first = executor.times()[0];
  // Stage 0: 1 + 2 * 0.5. Link: 2 * 5 * 0.1, then 3 of latency. Stage 1: 2 tokens, 1 + 2 keys, 1 output.
  EXPECT_DOUBLE_EQ(first.stages[0].end, 2);
  EXPECT_DOUBLE_EQ(first.links[0].end, 3);
  EXPECT_DOUBLE_EQ(first.stages[1].begin, 6);
  EXPECT_DOUBLE_EQ(first.stages[1].end, 6 + 2 + 0.75 + 2);
  EXPECT_DOUBLE_EQ(first.links[1].end, 10.75 + 2);
  EXPECT_DOUBLE_EQ(first.done, 13.75);
  const StepTimes& second = executor.times()[1];
  EXPECT_DOUBLE_EQ(second.stages[0].begin, 2);
  EXPECT_DOUBLE_EQ(second.stages[1].begin, 10.75) << "there at 8, but stage 1 is busy";
  EXPECT_DOUBLE_EQ(second.stages[1].end, 10.75 + 2 + 1.75 + 2) << "3 + 4 keys";

  StepResult result;
  ASSERT_TRUE(executor.receive(result));
  EXPECT_DOUBLE_EQ(clock.now(), 13.75);
  EXPECT_THAT(result.stage_seconds, ElementsAre(DoubleNear(2, 1e-12), DoubleNear(4.75, 1e-12)));
  EXPECT_TRUE(executor.can_take());
  ASSERT_TRUE(executor.receive(result));
  EXPECT_FALSE(executor.next_result_at());
}

TEST(SimulatedExecutor, WeightsAreReadOnceHoweverManyTokensThereAre) {
  const SimulatedCost cost{.fixed = 1, .weights = 10, .per_token = 2};
  EXPECT_DOUBLE_EQ(simulated_seconds(cost, {.tokens = 1}), 11);
  EXPECT_DOUBLE_EQ(simulated_seconds(cost, {.tokens = 5}), 11);
  EXPECT_DOUBLE_EQ(simulated_seconds(cost, {.tokens = 6}), 13);
}

TEST(SimulatedExecutor, ATileThatIsBegunCostsAsMuchAsAFullOne) {
  const SimulatedCost cost{.fixed = 1, .per_token = 0.5, .per_tile = 8};
  EXPECT_DOUBLE_EQ(simulated_seconds(cost, {.tokens = 1}), 1 + 0.5 + 8);
  EXPECT_DOUBLE_EQ(simulated_seconds(cost, {.tokens = 16}), 1 + 8 + 8);
  EXPECT_DOUBLE_EQ(simulated_seconds(cost, {.tokens = 17}), 1 + 8.5 + 16);
}

TEST(SimulatedExecutor, CountsTheKeysOfEachGroupByItsLayers) {
  SimulatedMachine machine = machine_of(1, {0, 3});
  machine.groups[1].layers = 3;
  StepPlan plan;
  plan.rows = {{.sequence = kOne, .first_pos = 1, .num_tokens = 4, .num_outputs = 1}};
  plan.tokens.resize(4);
  // Positions 1 to 4: 2 + 3 + 4 + 5 keys without a window, 2 + 3 + 3 + 3 with one of 3.
  EXPECT_DOUBLE_EQ(step_work(machine, plan).keys, (14.0 + 3 * 11) / 4);
}

TEST(SimulatedExecutor, ReportsAPlanThatAStageRefuses) {
  VirtualClock clock;
  SimulatedExecutor executor(machine_of(2), clock);
  Plans plans(1);
  executor.submit(plans.row(kOne, counted(8), 0, 8, {0}));
  StepResult result;
  const auto outcome = executor.receive(result);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace headrace
