#include "engine/step_calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>

namespace headrace {
namespace {

/// A stage that takes a fixed time for each kind of work; step `failing` fails.
class CostedExecutor final : public Executor {
 public:
  CostedExecutor(StageCost cost, int64_t failing) : cost_(cost), failing_(failing) {}
  void submit(StepPlan plan) override { plans_.push_back(std::move(plan)); }
  [[nodiscard]] bool can_take() const override { return plans_.empty(); }
  [[nodiscard]] Result<std::monostate> receive(StepResult& result) override {
    const StepPlan plan = std::move(plans_.front());
    plans_.pop_front();
    if (++steps_ == failing_) return Error(ErrorCode::kInternal, "broken");
    result = {};
    result.epoch = plan.epoch;
    result.step_id = plan.step_id;
    StepLoad load;
    for (const PlanRow& row : plan.rows) {
      longest_ = std::max(longest_, row.num_tokens);
      row.num_tokens == 1 ? load.add_decode(row.first_pos) : load.add_chunk(row.first_pos, row.num_tokens);
      if (row.num_outputs > 0) result.outputs.push_back({row.sequence, row.first_pos + row.num_tokens - 1});
    }
    result.stage_seconds = {cost_.seconds(load)};
    return std::monostate{};
  }
  [[nodiscard]] int64_t steps() const noexcept { return steps_; }
  [[nodiscard]] int32_t longest() const noexcept { return longest_; }

 private:
  StageCost cost_;
  int64_t failing_;
  std::deque<StepPlan> plans_;
  int64_t steps_ = 0;
  int32_t longest_ = 0;
};

/// A second passes with each look at it.
class TickingClock final : public Clock {
 public:
  [[nodiscard]] double now() const override { return ++seconds_; }

 private:
  mutable double seconds_ = 0;
};

constexpr StageCost kTrue{
    .fixed = 20e-3, .per_decode_row = 4e-4, .per_prompt_token = 9e-4, .per_attended_key = 3e-8, .per_read_key = 2e-8};

std::vector<StageCost> calibrate(Executor& executor, double seconds, int32_t max_model_len = 4096,
                                 int32_t num_blocks = 1024) {
  const TickingClock clock;
  return calibrate_steps({.executor = executor,
                          .cache = {.groups = {{.num_blocks = num_blocks}}},
                          .scheduler = {.max_step_tokens = 512},
                          .clock = clock,
                          .max_model_len = max_model_len,
                          .seconds = seconds});
}

TEST(StepCalibration, FindsWhatStepsCost) {
  CostedExecutor executor(kTrue, 0);
  const std::vector<StageCost> costs = calibrate(executor, std::numeric_limits<double>::infinity());
  ASSERT_EQ(costs.size(), 1u);
  EXPECT_LE(executor.longest(), 512);
  EXPECT_GT(executor.longest(), 500);  // a few earlier sequences decode in the same step
  for (const int32_t chunk : {0, 32, 200, 512}) {
    for (const int rows : {1, 4}) {
      StepLoad load;
      for (int i = 0; i < rows; ++i) load.add_decode(100);
      if (chunk > 0) load.add_chunk(0, chunk);
      // A handful of steps, which begin from costs that are not these: a fifth is well within the half that targets
      // leave for errors, and steps of a load teach the rest.
      EXPECT_NEAR(costs[0].seconds(load), kTrue.seconds(load), 0.2 * kTrue.seconds(load)) << chunk << ", " << rows;
    }
  }
}

TEST(StepCalibration, TakesNoLongerThanItMay) {
  CostedExecutor executor(kTrue, 0);
  (void)calibrate(executor, 0.5);
  EXPECT_EQ(executor.longest(), 32);
}

TEST(StepCalibration, StopsWhereThereIsNoRoomForMore) {
  CostedExecutor executor(kTrue, 0);
  (void)calibrate(executor, std::numeric_limits<double>::infinity(), 64);
  EXPECT_EQ(executor.longest(), 32) << "64 tokens leave no room for an answer";
  CostedExecutor small(kTrue, 0);
  (void)calibrate(small, std::numeric_limits<double>::infinity(), 100, 8);
  EXPECT_GT(small.steps(), 0);
}

TEST(StepCalibration, AFailedStepLeavesTheCostsAsTheyWere) {
  CostedExecutor executor(kTrue, 3);
  const std::vector<StageCost> costs = calibrate(executor, std::numeric_limits<double>::infinity());
  ASSERT_EQ(costs.size(), 1u);
  EXPECT_EQ(costs[0].fixed, StageCost{}.fixed);
  EXPECT_EQ(executor.steps(), 3);
}

}  // namespace
}  // namespace headrace
