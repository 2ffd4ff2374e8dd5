// The same tokens however many steps are in flight, and however the model is cut.
#include <gtest/gtest.h>

#include "base/test_walk.h"
#include "engine/test_answers.h"

namespace headrace {
namespace {

constexpr size_t kAnswer = 12;

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
  const TestAnswers made = greedy_answers(engine, 9, kAnswer);
  EXPECT_EQ(made.most_out, steps_in_flight);
  return made.tokens;
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
