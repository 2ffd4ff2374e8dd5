#include "sched/steps_in_flight.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace {
namespace {

StepLoad rows(int64_t n) { return {.decode_rows = n, .prompt_tokens = 0, .attended_keys = 0, .read_keys = 0}; }

CostModel stages(size_t n, double fixed, double per_row) {
  return CostModel(std::vector<StageCost>(n, {.fixed = fixed,
                                              .per_decode_row = per_row,
                                              .per_prompt_token = 1e-6,
                                              .per_attended_key = 1e-9,
                                              .per_read_key = 0}));
}

/// No prompts, or none beside decode rows.
double no_target(int32_t) { return 0; }

int32_t chosen(const CostModel& costs, int64_t n, double round_trip, bool prompts = false) {
  StepsInFlight steps(0, 32);
  steps.measured(round_trip, std::vector<double>(costs.num_stages(), costs.stage(0).fixed), 1);
  steps.choose(costs, rows(n), prompts, no_target);
  return steps.limit();
}

TEST(StepsInFlight, OneStageTakesOneStep) { EXPECT_EQ(chosen(stages(1, 0.01, 0.001), 100, 0.5), 1); }

TEST(StepsInFlight, AtLeastTheStagesWhereThereAreAsManyRows) {
  const CostModel costs = stages(4, 0.01, 1e-6);
  EXPECT_EQ(chosen(costs, 1, 0.04), 1);
  EXPECT_EQ(chosen(costs, 3, 0.04), 3);
  EXPECT_EQ(chosen(costs, 4, 0.04), 4);
  EXPECT_EQ(chosen(costs, 100, 0.04), 4);
}

TEST(StepsInFlight, MoreWhereLinksAreSlow) {
  // All rows come back once every max(10 D + 10, 20 + 20 / D + 60) ms: least at 7.
  EXPECT_EQ(chosen(stages(2, 0.01, 1e-4), 100, 0.08), 7);
}

TEST(StepsInFlight, FewerWherePromptsFillThem) {
  StepsInFlight steps(0, 32);
  const CostModel costs = stages(2, 0.01, 1e-4);
  steps.measured(0.08, std::vector<double>(2, 0.01), 1);
  // Steps of 40 ms: 50 rows every 70 ms with two of them, 33 every 47 with three, 25 every 40 with four.
  steps.choose(costs, rows(100), true, [](int32_t) { return 0.04; });
  EXPECT_EQ(steps.limit(), 2);
}

TEST(StepsInFlight, WaitingBehindOtherStepsIsNoLinkTime) {
  StepsInFlight steps(0, 32);
  const CostModel costs = stages(2, 0.01, 1e-6);
  steps.measured(0.02, std::vector<double>(2, 0.01), 1);
  // Four steps out on two stages: each comes back after the time of four.
  for (int i = 0; i < 1000; ++i) steps.measured(0.04, std::vector<double>(2, 0.01), 4);
  steps.choose(costs, rows(100), false, no_target);
  EXPECT_EQ(steps.limit(), 2);
}

TEST(StepsInFlight, NorIsWaitingBehindLongerOnes) {
  StepsInFlight steps(0, 32);
  const CostModel costs = stages(2, 0.01, 1e-6);
  steps.measured(0.02, std::vector<double>(2, 0.01), 1);
  // Every other one of the four that are out takes ten times as long in the first stage: all wait for two of them.
  for (int i = 0; i < 1000; ++i) {
    steps.measured(0.115, std::vector{0.05, 0.005}, 4);
    steps.measured(0.115, std::vector{0.005, 0.005}, 4);
  }
  steps.choose(costs, rows(100), false, no_target);
  EXPECT_EQ(steps.limit(), 2);
}

TEST(StepsInFlight, PromptsAloneFillThePipeline) {
  EXPECT_EQ(chosen(stages(4, 0.01, 1e-6), 0, 0.04, true), 4);
  EXPECT_EQ(chosen(stages(2, 0.01, 1e-6), 0, 0.08, true), 8);
}

TEST(StepsInFlight, KeepsItsChoiceForSmallGains) {
  StepsInFlight steps(0, 32);
  const CostModel costs = stages(2, 0.01, 1e-4);
  steps.measured(0.08, std::vector<double>(2, 0.01), 1);
  steps.choose(costs, rows(100), false, no_target);
  ASSERT_EQ(steps.limit(), 7);
  for (int i = 0; i < 10000; ++i) steps.measured(0.09, std::vector<double>(2, 0.01), 1);
  steps.choose(costs, rows(100), false, no_target);
  EXPECT_EQ(steps.limit(), 7);  // 8 would be faster, by half a percent
}

TEST(StepsInFlight, FixedIsFixed) {
  StepsInFlight steps(3, 32);
  steps.choose(stages(8, 0.01, 1e-3), rows(100), true, no_target);
  EXPECT_EQ(steps.limit(), 3);
}

}  // namespace
}  // namespace headrace
