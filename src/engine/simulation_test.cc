#include "engine/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "engine/simulated_model.h"

namespace headrace {
namespace {

/// A pipeline of equal stages that together cost what one machine does.
SimulatedMachine split(SimulatedCost whole, size_t stages, int32_t kv_tokens = 1 << 17,
                       std::vector<int32_t> windows = {0}) {
  const auto n = static_cast<double>(stages);
  SimulatedMachine machine;
  machine.stages.assign(stages, {.fixed = whole.fixed / n,
                                 .per_token = whole.per_token / n,
                                 .per_tile = whole.per_tile / n,
                                 .per_key = whole.per_key / n,
                                 .per_output = whole.per_output / n});
  // 0.1 ms and 1 Gbit/s.
  machine.links.assign(stages, stages == 1 ? SimulatedLink{} : SimulatedLink{1e-4, 8e-9});
  machine.token_bytes = 2304;
  machine.output_bytes = 4;
  for (const int32_t window : windows) machine.groups.push_back({.num_blocks = kv_tokens / 16, .window = window});
  machine.max_step_tokens = 512;
  return machine;
}

/// About SmolLM2-135M on two cores: a row of a short sequence is 0.25 ms, a token of a prompt of 8000 0.35 ms.
constexpr SimulatedCost kSmall{.fixed = 3e-3, .per_token = 2.5e-4, .per_key = 2.5e-8};

SimulationConfig config_of(SimulatedMachine machine, std::vector<LoadRequest> load, int32_t clients = 0) {
  SimulationConfig config;
  config.scheduler.max_step_tokens = machine.max_step_tokens;
  config.scheduler.max_num_seqs = 2000;
  config.scheduler.stage_costs = measured_costs(machine);
  config.machine = std::move(machine);
  config.load = std::move(load);
  config.clients = clients;
  return config;
}

/// Runs it, and holds it to the right tokens for all requests.
SimulationResult run_right(const SimulationConfig& config) {
  SimulationResult result = run_simulation(config);
  EXPECT_EQ(result.wrong_tokens, 0) << result.first_wrong;
  EXPECT_EQ(result.refused, 0);
  EXPECT_EQ(result.requests.size(), config.load.size());
  size_t tokens = 0;
  size_t expected = 0;
  for (const RequestTimes& request : result.requests) tokens += request.tokens.size();
  for (const LoadRequest& request : config.load) expected += static_cast<size_t>(request.output_tokens);
  EXPECT_EQ(tokens, expected);
  return result;
}

TEST(Simulation, TokensAreRightWithAnyStepsInFlightStagesAndChunks) {
  const std::vector<LoadRequest> load =
      make_load({.requests = 30, .lengths = LengthKind::kUneven, .prompt_tokens = 60, .output_tokens = 8});
  for (const size_t stages : {1u, 2u, 5u, 16u}) {
    for (const int32_t in_flight : {0, 1, 2, 3, 8, 32}) {
      for (const int32_t step_tokens : {3, 17, 512}) {
        SimulationConfig config = config_of(split(kSmall, stages, 1 << 14, {0, 24}), load, 9);
        config.scheduler.steps_in_flight = in_flight;
        config.scheduler.max_step_tokens = step_tokens;
        SCOPED_TRACE(testing::Message() << stages << " stages, " << in_flight << " steps in flight, " << step_tokens
                                        << " tokens a step");
        run_right(config);
      }
    }
  }
}

TEST(Simulation, TokensAreRightOnUnequalStagesBehindSlowLinks) {
  SimulatedMachine machine = split(kSmall, 3);
  machine.stages[1].per_token *= 4;
  machine.links[0] = {.latency = 0.02, .seconds_per_byte = 1e-6};
  run_right(config_of(
      std::move(machine),
      make_load(
          {.requests = 60, .rate = 20, .lengths = LengthKind::kNormal, .prompt_tokens = 100, .output_tokens = 12})));
}

TEST(Simulation, TokensAreRightWithSharedPrefixes) {
  SimulationConfig config =
      config_of(split(kSmall, 2), make_load({.requests = 40, .prompt_tokens = 100, .output_tokens = 8}), 4);
  config.shared_prefix_tokens = 70;
  const SimulationResult result = run_right(config);
  // 64 of 100 tokens are in whole blocks; the first ones of the four clients come before they are computed.
  EXPECT_GE(result.cache.hit_tokens, 36 * 64);
  config.prefix_caching = false;
  EXPECT_EQ(run_right(config).cache.hit_tokens, 0);
}

TEST(Simulation, CacheForTwoRequestsServesThirtyTwo) {
  for (const size_t stages : {1u, 4u}) {
    SimulationConfig config = config_of(split(kSmall, stages, 2 * 256),
                                        make_load({.requests = 32, .prompt_tokens = 128, .output_tokens = 128}));
    EXPECT_GT(run_right(config).scheduler.preemptions, 0) << stages << " stages";
    config.tell_lengths = true;
    run_right(config);
  }
}

TEST(Simulation, TokensAreRightUnderPreemptionWithWindows) {
  for (const int32_t in_flight : {1, 4, 16}) {
    SimulationConfig config = config_of(
        split(kSmall, 4, 60 * 16, {0, 40}),
        make_load({.requests = 64, .lengths = LengthKind::kUneven, .prompt_tokens = 90, .output_tokens = 120}));
    config.scheduler.steps_in_flight = in_flight;
    config.shared_prefix_tokens = 20;
    EXPECT_GT(run_right(config).scheduler.preemptions, 0) << in_flight << " steps in flight";
  }
}

TEST(Simulation, AnOverlongRequestFailsAlone) {
  std::vector<LoadRequest> load = make_load({.requests = 10, .prompt_tokens = 50, .output_tokens = 10});
  load[3].prompt_tokens = 600;
  const SimulationResult result = run_simulation(config_of(split(kSmall, 1, 512), load));
  EXPECT_EQ(result.refused, 1);
  EXPECT_EQ(result.requests.size(), 9u);
  EXPECT_EQ(result.wrong_tokens, 0) << result.first_wrong;
}

double first_token_after(size_t stages) {
  SimulatedCost cost = kSmall;
  cost.per_key = 0;  // so that all chunks cost the same
  SimulationConfig config = config_of(split(cost, stages), {{.prompt_tokens = 4000, .output_tokens = 4}});
  config.scheduler.max_step_tokens = 250;  // 16 chunks
  return run_right(config).requests.at(0).tokens.at(0);
}

TEST(Simulation, ChunksOfOnePromptRunOnAllStagesAtOnce) {
  const double alone = first_token_after(1);
  EXPECT_LE(first_token_after(2), 0.6 * alone);
  EXPECT_LE(first_token_after(4), 0.35 * alone);
}

TEST(Simulation, SixteenStagesAreBusyWithAThousandClients) {
  const SimulatedCost whole{.fixed = 16e-3, .per_token = 1.6e-3, .per_key = 1e-7, .per_output = 1e-3};
  const SimulationConfig config = config_of(
      split(whole, 16, 1 << 20),
      make_load({.requests = 2500, .lengths = LengthKind::kNormal, .prompt_tokens = 150, .output_tokens = 40}), 1000);
  const PipelineFigures figures = pipeline_figures(run_right(config));
  for (const double bubble : figures.steady_bubbles) EXPECT_LT(bubble, 0.05);
}

/// Output tokens a second while the middle half of them came.
double steady_rate(const SimulationResult& result) {
  std::vector<double> tokens;
  for (const RequestTimes& request : result.requests) {
    tokens.insert(tokens.end(), request.tokens.begin(), request.tokens.end());
  }
  std::ranges::sort(tokens);
  const size_t quarter = tokens.size() / 4;
  return static_cast<double>(2 * quarter) / (tokens[3 * quarter] - tokens[quarter]);
}

TEST(Simulation, UnevenLengthsLoseLittle) {
  LoadSpec spec{.requests = 1200, .prompt_tokens = 200, .output_tokens = 60};
  SimulatedCost cost = kSmall;
  cost.per_key = 0;  // long sequences would cost more, however they are scheduled
  const double even = steady_rate(run_right(config_of(split(cost, 4, 1 << 18), make_load(spec), 100)));
  spec.lengths = LengthKind::kUneven;
  const double uneven = steady_rate(run_right(config_of(split(cost, 4, 1 << 18), make_load(spec), 100)));
  EXPECT_GT(uneven, 0.97 * even);
}

TEST(Simulation, KernelsThatComputeInTilesLoseLittle) {
  // About llama-1b in Q4_K on a core with AMX.
  const SimulatedCost tiles{.fixed = 50e-3, .per_token = 0.5e-3, .per_tile = 35e-3, .per_key = 6e-7};
  SimulatedCost smooth = tiles;
  smooth.per_token += std::exchange(smooth.per_tile, 0) / kSimulatedTile;
  for (const LengthKind lengths : {LengthKind::kFixed, LengthKind::kUneven}) {
    for (const size_t stages : {1u, 2u}) {
      const auto clients = static_cast<int32_t>(32 * stages);
      const std::vector<LoadRequest> load =
          make_load({.requests = 320, .lengths = lengths, .prompt_tokens = 256, .output_tokens = 128});
      const double in_tiles = steady_rate(run_right(config_of(split(tiles, stages), load, clients)));
      EXPECT_GT(in_tiles, 0.97 * steady_rate(run_right(config_of(split(smooth, stages), load, clients))))
          << stages << " stages";
    }
  }
}

TEST(Simulation, ALongPromptHardlyDelaysStreamsBesideIt) {
  std::vector<LoadRequest> load(16, {.prompt_tokens = 20, .output_tokens = 400});
  load.push_back({.arrival = 0.5, .prompt_tokens = 8000, .output_tokens = 4});
  const SimulationResult result = run_right(config_of(split(kSmall, 1), load));
  const double begin = result.requests[16].arrival;
  const double end = result.requests[16].tokens[0];
  std::vector<double> gaps;
  for (size_t i = 0; i < 16; ++i) {
    const std::vector<double>& tokens = result.requests[i].tokens;
    for (size_t j = 1; j < tokens.size(); ++j) {
      if (tokens[j] > begin && tokens[j - 1] < end) gaps.push_back(tokens[j] - tokens[j - 1]);
    }
  }
  const double solo = 3e-3 + 16 * 2.5e-4;
  EXPECT_LE(spread_of(gaps).p99, std::max(3 * solo, solo + 25e-3));
  // Nor do the streams keep the prompt waiting: it takes 2.8 s alone.
  EXPECT_LT(end - begin, 2 * 2.8);
}

TEST(Simulation, PipelinesWithoutBalancingLoseToTheScheduler) {
  SimulationConfig config = config_of(
      split(kSmall, 4, 1 << 18),
      make_load({.requests = 400, .lengths = LengthKind::kUneven, .prompt_tokens = 200, .output_tokens = 60}), 100);
  const double balanced = steady_rate(run_right(config));
  config.balanced = false;
  config.scheduler.steps_in_flight = 4;
  EXPECT_LT(steady_rate(run_right(config)), balanced);
}

TEST(PipelineFigures, AreSharesOfTime) {
  SimulationResult result;
  result.requests = {{.arrival = 0, .prompt_tokens = 1, .tokens = {2, 4, 6, 8, 10}}};
  // The middle half of the tokens came from 4 to 8.
  result.steps = {
      {.work = {.tokens = 3}, .rows = 1, .submitted = 0, .done = 6, .stages = {{0, 5}}, .links = {{5, 6}}},
      {.work = {.tokens = 1}, .rows = 2, .submitted = 2, .done = 10, .stages = {{7, 9}}, .links = {{9, 10}}}};
  const PipelineFigures figures = pipeline_figures(result);
  EXPECT_DOUBLE_EQ(figures.bubbles.at(0), 0.3);
  EXPECT_DOUBLE_EQ(figures.steady_bubbles.at(0), 0.5);
  EXPECT_DOUBLE_EQ(figures.link_busy.at(0), 0.2);
  EXPECT_DOUBLE_EQ(figures.mean_in_flight, 1.4);
  EXPECT_DOUBLE_EQ(figures.mean_rows, 1.5);
  EXPECT_DOUBLE_EQ(figures.mean_tokens, 2);
  EXPECT_DOUBLE_EQ(figures.step_seconds.max, 5);
}

}  // namespace
}  // namespace headrace
