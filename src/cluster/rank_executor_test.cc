// The same logits, bit for bit, when layers are divided over ranks.
#include "cluster/rank_executor.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/test_walk.h"
#include "cluster/rank_orders.h"
#include "cluster/rank_worker.h"
#include "cluster/test_ranks.h"
#include "engine/test_answers.h"

namespace headrace::cluster {
namespace {

const std::string kModels = std::string(HR_TEST_DATA) + "/models/";
const std::string kGguf = std::string(HR_TEST_DATA) + "/gguf/";

/// Ranks other than 0, on threads of this process.
struct RankThreads {
  std::vector<RankRing> rings;
  std::vector<Error> ends;
  std::vector<std::jthread> threads;

  /// The group of rank 0, whose end is theirs.
  [[nodiscard]] RankGroup start(int32_t ranks, RankTransport transport) {
    rings = connected_rings(ranks, transport);
    RankGroup group{.ring = std::make_unique<RankRing>(std::move(rings.front())), .processes = {}};
    rings.erase(rings.begin());
    ends.resize(rings.size(), Error(ErrorCode::kInternal, "still runs"));
    for (size_t i = 0; i < rings.size(); ++i) {
      threads.emplace_back([this, i] { ends[i] = run_rank(rings[i]); });
    }
    return group;
  }
};

EngineConfig config_of(Numerics numerics) {
  return {.isa = best_isa(),
          .numerics = numerics,
          .max_model_len = 96,
          .max_num_seqs = 8,
          .max_step_tokens = 24,
          .max_chunk_tokens = 7};
}

EngineConfig on_ranks(EngineConfig config, RankThreads& others, int32_t ranks, RankTransport transport) {
  config.assemble = [&others, ranks, transport](const StageSite& site) {
    return assemble_ranks(site, others.start(ranks, transport));
  };
  return config;
}

/// Logits of every position of a prompt, and the tokens that are chosen after it.
std::vector<float> logits_of(Engine& engine, int32_t length) {
  std::vector<TokenId> prompt;
  for (int32_t i = 0; i < length; ++i) prompt.push_back((i * i * 7 + i * 3 + 11) % 500);
  const auto id = engine.start(prompt, length, 0);
  if (!id) throw Error(ErrorCode::kOutOfMemory, "no room in the cache");
  std::vector<float> logits;
  while (const StepResult* result = engine.step())
    logits.insert(logits.end(), result->data.begin(), result->data.end());
  engine.finish(*id);
  return logits;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Case {
  std::string model;
  Numerics numerics = Numerics::kPortable;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* name : {"llama", "llama-attn-bias", "llama-yarn", "mistral", "qwen2", "qwen3", "llama-tied-bf16"}) {
    all.push_back({kModels + name});
  }
  for (const char* name : {"llama-256-Q4_K_M", "llama-Q8_0", "qwen2-Q8_0"}) {
    for (const Numerics numerics : {Numerics::kPortable, Numerics::kFastest}) {
      all.push_back({kGguf + name + ".gguf", numerics});
    }
  }
  all.push_back({kGguf + "qwen2-F32.gguf", Numerics::kExact});
  return all;
}

TEST(RankExecutor, TwoRanksGiveTheBitsOfOne) {
  TestWalk walk("models and transports of ranks", 4);
  for (const Case& c : cases()) {
    const ModelFiles files = open_model(c.model);
    Engine alone(files, config_of(c.numerics));
    const std::vector<float> want = logits_of(alone, 40);
    const auto want_answers = greedy_answers(alone, 3, 6).tokens;
    for (const RankTransport transport : kAllRankTransports) {
      if (!walk.takes_next()) continue;
      RankThreads others;
      Engine engine(files, on_ranks(config_of(c.numerics), others, 2, transport));
      EXPECT_TRUE(same(logits_of(engine, 40), want)) << c.model << " over " << transport_name(transport);
      EXPECT_EQ(greedy_answers(engine, 3, 6).tokens, want_answers) << c.model << " over " << transport_name(transport);
      // Weights are there once, but for small vectors and padding.
      EXPECT_GE(engine.file_bytes(), alone.file_bytes());
      EXPECT_LT(engine.file_bytes(), alone.file_bytes() * 5 / 4) << c.model;
      EXPECT_EQ(engine.kv_bytes(), alone.kv_bytes());
    }
  }
}

TEST(RankExecutor, ALostRankFailsTheStepAndAllAfterIt) {
  const ModelFiles files = open_model(kModels + "llama");
  RankThreads others;
  Engine engine(files, on_ranks(config_of(Numerics::kPortable), others, 2, RankTransport::kSharedMemory));
  EXPECT_EQ(logits_of(engine, 5).size(), 5u * static_cast<size_t>(engine.spec().vocab_size));
  const auto& executor = dynamic_cast<const RankExecutor&>(engine.executor());
  EXPECT_FALSE(executor.has_lost_rank());
  // What the rank's process would lose with its life.
  others.rings.front().shut_down();
  EXPECT_TRUE(executor.has_lost_rank()) << "before it is needed";
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(engine.start({1, 2, 3}, 8, 0).has_value());
    try {
      (void)engine.step();
      ADD_FAILURE() << "a step without its rank";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_EQ(error.message(), "rank 1 of 2 is gone; start the program again");
    }
    engine.restart();
  }
  EXPECT_TRUE(executor.has_lost_rank());
}

TEST(RankExecutor, ARankThatCannotLoadSaysWhy) {
  RankThreads others;
  const RankGroup group = others.start(2, RankTransport::kTcp);
  send_setup(*group.ring, {.path = kModels + "none.gguf", .isa = Isa::kRef});
  try {
    static_cast<void>(receive_reports(*group.ring));
    ADD_FAILURE() << "a model that is not there was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_TRUE(error.message().starts_with("rank 1: ")) << error.message();
    EXPECT_NE(error.message().find("none.gguf"), std::string::npos) << error.message();
    others.threads.clear();
    EXPECT_EQ(others.ends.front().code(), ErrorCode::kNotFound) << others.ends.front().message();
  }
}

TEST(RankExecutor, HeadsThatCannotBeDividedAreRefused) {
  const ModelFiles files = open_model(kModels + "llama");
  RankThreads others;
  try {
    Engine engine(files, on_ranks(config_of(Numerics::kPortable), others, 3, RankTransport::kSharedMemory));
    ADD_FAILURE() << "2 KV heads over 3 ranks";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "the model's 2 KV heads (4 heads) cannot be divided evenly over 3 ranks");
  }
}

}  // namespace
}  // namespace headrace::cluster
