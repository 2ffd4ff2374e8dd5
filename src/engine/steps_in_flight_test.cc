// The same tokens however many steps are in flight, and however the model is cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/test_walk.h"
#include "engine/engine.h"

namespace headrace {
namespace {

constexpr int32_t kAnswer = 12;

/// Greedy answers to prompts of many lengths, which share their beginning, all at once.
std::vector<std::vector<TokenId>> answers(const ModelFiles& files, int32_t steps_in_flight, int32_t stages,
                                          DType kv_dtype) {
  EngineConfig config{.isa = best_isa(),
                      .kv_dtype = kv_dtype,
                      .max_model_len = 96,
                      .max_num_seqs = 3,  // fewer than there are: some wait, some are preempted
                      .max_step_tokens = 24,
                      .max_chunk_tokens = 7,
                      .steps_in_flight = steps_in_flight};
  if (stages > 1) config.stages = even_cut(make_arch_spec(files), stages);
  config.serving = ServingConfig{.kv_cache_bytes = 256 << 10, .prefix_caching = true};
  Engine engine(files, config);
  Scheduler& scheduler = engine.scheduler();
  std::map<SequenceId, std::vector<TokenId>> running;
  for (uint64_t i = 0; i < 9; ++i) {
    std::vector<TokenId> prompt;
    for (uint64_t t = 0; t < 20 + i * 6; ++t)
      prompt.push_back(static_cast<TokenId>((t * t * 5 + (t > 17 ? i : 0)) % 500));
    const auto length = static_cast<int32_t>(prompt.size());
    EXPECT_EQ(scheduler.add(SequenceId{i + 1}, {.tokens = std::move(prompt), .max_len = length + kAnswer}),
              Admit::kYes);
    running[SequenceId{i + 1}] = {};
  }
  int32_t out = 0, most_out = 0;
  size_t finished = 0;
  StepResult result;
  while (finished < running.size()) {
    while (out < scheduler.steps_in_flight_limit() && engine.executor().can_take()) {
      std::optional<StepPlan> plan = scheduler.compose();
      if (!plan) break;
      engine.executor().submit(std::move(*plan));
      most_out = std::max(most_out, ++out);
    }
    if (out == 0 || !engine.executor().receive(result)) {
      ADD_FAILURE() << "nothing can be computed, or a step failed";
      break;
    }
    --out;
    scheduler.complete(result);
    for (size_t row = 0; row < result.outputs.size(); ++row) {
      const SequenceId id = result.outputs[row].sequence;
      const auto logits =
          std::span(result.data).subspan(row * static_cast<size_t>(result.width), static_cast<size_t>(result.width));
      const auto token = static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
      running[id].push_back(token);
      if (running[id].size() < kAnswer) {
        scheduler.append(id, token);
      } else {
        scheduler.finish(id);
        ++finished;
      }
    }
  }
  EXPECT_EQ(most_out, steps_in_flight);
  std::vector<std::vector<TokenId>> all;
  for (auto& [id, tokens] : running) all.push_back(std::move(tokens));
  return all;
}

TEST(StepsInFlight, ChangeNothing) {
  TestWalk walk("models and cache types with steps in flight", 5);
  for (const char* name : {"/models/llama", "/models/mistral"}) {
    const ModelFiles files = open_model(std::string(HR_TEST_DATA) + name);
    for (const DType kv_dtype : kKvDTypes) {
      if (!walk.takes_next()) continue;
      const auto want = answers(files, 1, 1, kv_dtype);
      for (const int32_t steps : {2, 4}) {
        for (const int32_t stages : {1, 2}) {
          EXPECT_EQ(answers(files, steps, stages, kv_dtype), want)
              << name << ", KV " << kv_dtype_name(kv_dtype) << ", " << steps << " steps, " << stages << " stages";
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace
