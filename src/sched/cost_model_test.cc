#include "sched/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headrace {
namespace {

constexpr StageCost kTrue{
    .fixed = 8e-3, .per_decode_row = 4e-4, .per_prompt_token = 2e-4, .per_attended_key = 3e-8, .per_read_key = 2e-8};

/// Steps of a server: decode rows, now and then a chunk; the same in every run.
StepLoad load_at(int step) {
  StepLoad load;
  for (int row = 0; row < 1 + step * 7 % 16; ++row) load.add_decode(100 + step * 37 % 900);
  if (step % 3 == 0) load.add_chunk(step * 53 % 4000, 32 + step * 29 % 300);
  return load;
}

/// Between -1 and 1, the same in every run.
double noise_at(int step) { return std::sin(step * 12.9898) * std::cos(step * 78.233); }

TEST(CostModel, FindsTheCostsOfAStage) {
  CostModel model(std::vector<StageCost>{StageCost{}});
  for (int step = 0; step < 300; ++step) {
    const StepLoad load = load_at(step);
    const double seconds = kTrue.seconds(load);
    if (step > 100) {
      EXPECT_NEAR(model.slowest().seconds(load), seconds, 0.01 * seconds) << "step " << step;
    }
    model.learn(load, std::vector<double>{seconds * (1 + 0.002 * noise_at(step))});
  }
  EXPECT_NEAR(model.slowest().per_decode_row, kTrue.per_decode_row, 0.05 * kTrue.per_decode_row);
  EXPECT_LT(model.relative_error(), 0.01);
}

TEST(CostModel, ASlowStepChangesLittle) {
  CostModel model(std::vector<StageCost>{StageCost{}});
  const auto seconds = [](int step) { return kTrue.seconds(load_at(step)) * (1 + 0.01 * noise_at(step)); };
  for (int step = 0; step < 200; ++step) model.learn(load_at(step), std::vector<double>{seconds(step)});
  const double before = model.slowest().seconds(load_at(7));
  model.learn(load_at(200), std::vector<double>{100 * seconds(200)});
  EXPECT_NEAR(model.slowest().seconds(load_at(7)), before, 0.02 * before);
}

TEST(CostModel, BelievesAMachineThatHasBecomeSlower) {
  CostModel model(std::vector<StageCost>{StageCost{}});
  for (int step = 0; step < 200; ++step) model.learn(load_at(step), std::vector<double>{kTrue.seconds(load_at(step))});
  for (int step = 200; step < 400; ++step) {
    model.learn(load_at(step), std::vector<double>{2 * kTrue.seconds(load_at(step))});
  }
  EXPECT_NEAR(model.slowest().seconds(load_at(5)), 2 * kTrue.seconds(load_at(5)), 0.2 * kTrue.seconds(load_at(5)));
}

TEST(CostModel, LearnsFromCostsThatAreFarTooSmall) {
  CostModel model(std::vector<StageCost>{StageCost{.fixed = 1e-9,
                                                   .per_decode_row = 1e-9,
                                                   .per_prompt_token = 1e-9,
                                                   .per_attended_key = 1e-15,
                                                   .per_read_key = 1e-15}});
  for (int step = 0; step < 400; ++step) model.learn(load_at(step), std::vector<double>{kTrue.seconds(load_at(step))});
  EXPECT_NEAR(model.slowest().seconds(load_at(5)), kTrue.seconds(load_at(5)), 0.1 * kTrue.seconds(load_at(5)));
}

TEST(CostModel, GetsOverFirstStepsThatStoodStill) {
  CostModel model(std::vector<StageCost>{StageCost{}});
  for (int step = 0; step < 400; ++step) {
    model.learn(load_at(step), std::vector<double>{(step < 3 ? 2000 : 1) * kTrue.seconds(load_at(step))});
  }
  EXPECT_NEAR(model.slowest().seconds(load_at(5)), kTrue.seconds(load_at(5)), 0.1 * kTrue.seconds(load_at(5)));
}

TEST(CostModel, KeepsWhatItKnowsOfPromptsThroughHoursOfDecoding) {
  CostModel model(std::vector<StageCost>{StageCost{}});
  for (int step = 0; step < 200; ++step) model.learn(load_at(step), std::vector<double>{kTrue.seconds(load_at(step))});
  StepLoad prompt;
  prompt.add_chunk(0, 256);
  for (int step = 0; step < 100000; ++step) {
    StepLoad load;
    for (int row = 0; row < 4; ++row) load.add_decode(100 + step % 1000);
    model.learn(load, std::vector<double>{kTrue.seconds(load) * (1 + 0.01 * noise_at(step))});
  }
  EXPECT_NEAR(model.slowest().seconds(prompt), kTrue.seconds(prompt), 0.2 * kTrue.seconds(prompt));
}

TEST(CostModel, StaysNearAMachineOfAnotherKind) {
  // Reading the weights hides what few tokens cost: no sum of positive terms is right for every load.
  const auto seconds = [](const StepLoad& load) {
    const auto tokens = static_cast<double>(load.decode_rows + load.prompt_tokens);
    return std::max(17.5e-3, 26e-6 * tokens) + 6e-9 * static_cast<double>(load.attended_keys);
  };
  CostModel model(std::vector<StageCost>{StageCost{
      .fixed = 0, .per_decode_row = 26e-6, .per_prompt_token = 26e-6, .per_attended_key = 6e-9, .per_read_key = 0}});
  StepLoad load;
  for (int step = 0; step < 30000; ++step) {
    // Up to 80 sequences, which become longer and fewer; in the end one alone for a long time.
    const int rows = std::max(1, 80 - step / 100);
    load = {};
    for (int row = 0; row < rows; ++row) load.add_decode(100 + (step * 7 + row * 31) % 4000);
    if (step < 7000 && step % 9 == 0) load.add_chunk(0, 100 + step * 13 % 3000);
    model.learn(load, std::vector<double>{seconds(load) * (1 + 0.001 * noise_at(step))});
    if (step > 100) {
      ASSERT_LT(model.relative_error(), 0.9) << "step " << step;
    }
  }
  EXPECT_NEAR(model.slowest().seconds(load), seconds(load), 0.05 * seconds(load));
}

TEST(CostModel, TellsHowLateStepsWithPromptsMayBe) {
  const auto late_ratio = [](double share, double ratio) {
    CostModel model(std::vector<StageCost>{StageCost{}});
    double debt = 0;
    for (int step = 0; step < 6000; ++step) {
      const StepLoad load = load_at(step);
      if (load.prompt_tokens > 0) debt += share;
      const bool is_late = debt >= 1;
      if (is_late) debt -= 1;
      model.learn(load, std::vector<double>{kTrue.seconds(load) * (is_late ? ratio : 1)});
    }
    return model.late_ratio();
  };
  EXPECT_LT(late_ratio(0, 1), 1.05);
  EXPECT_LT(late_ratio(0.002, 1.6), 1.3) << "too rare to count";
  EXPECT_NEAR(late_ratio(0.1, 1.6), 1.6, 0.15);
  EXPECT_NEAR(late_ratio(0.1, 10), 2, 0.05) << "the most that is allowed for";
}

TEST(CostModel, KnowsTheSlowestStage) {
  StageCost slow = kTrue;
  slow.fixed *= 2;
  CostModel model(std::vector<StageCost>{StageCost{}, StageCost{}, StageCost{}});
  for (int step = 0; step < 200; ++step) {
    const StepLoad load = load_at(step);
    model.learn(load, std::vector<double>{kTrue.seconds(load), slow.seconds(load), kTrue.seconds(load)});
  }
  EXPECT_EQ(&model.slowest(), &model.stage(1));
}

TEST(StageCost, FindsTheChunkThatFillsATime) {
  for (const double seconds : {1e-4, 1e-2, 1.0, 60.0}) {
    for (const int32_t first : {0, 1000, 100000}) {
      const auto tokens = static_cast<int32_t>(kTrue.chunk_for(seconds, first));
      StepLoad chunk;
      chunk.add_chunk(first, tokens);
      EXPECT_LE(kTrue.marginal(chunk), seconds * (1 + 1e-9));
      chunk = {};
      chunk.add_chunk(first, tokens + 1);
      EXPECT_GT(kTrue.marginal(chunk), seconds * (1 - 1e-9));
    }
  }
  EXPECT_EQ(kTrue.chunk_for(-1, 0), 0);
}

}  // namespace
}  // namespace headrace
