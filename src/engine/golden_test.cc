#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "engine/golden_find.h"
#include "engine/golden_model.h"
#include "engine/golden_texts.h"

namespace headrace {
namespace {

TEST(Golden, KlDivergenceOfTwoTokens) {
  // p = (2/3, 1/3), q = (1/2, 1/2), whatever is added to the logits.
  const std::vector<float> p{std::log(2.0f) + 50, 50};
  const std::vector<float> q{-7, -7};
  const double want = 2.0 / 3 * std::log(4.0 / 3) + 1.0 / 3 * std::log(2.0 / 3);
  EXPECT_NEAR(kl_divergence(p, q), want, 2e-6) << "the logits are floats near 50: 4e-6 each";
  EXPECT_EQ(kl_divergence(p, p), 0);
}

TEST(Golden, ToleranceFollowsWhatTheGoldenKnows) {
  GoldenModel golden;
  EXPECT_EQ(golden_tolerance(golden, Numerics::kExact), 1e-3);
  EXPECT_EQ(golden_tolerance(golden, Numerics::kPortable), std::nullopt);
  golden.bfloat16_diff = 0.1;
  EXPECT_DOUBLE_EQ(*golden_tolerance(golden, Numerics::kPortable), 0.3);
  golden.llama_cpp_diff = 5e-6;
  EXPECT_DOUBLE_EQ(*golden_tolerance(golden, Numerics::kPortable), 0.3) << "float32 noise is no yardstick";
  golden.llama_cpp_diff = 0.2;
  EXPECT_DOUBLE_EQ(*golden_tolerance(golden, Numerics::kPortable), 0.4);
  EXPECT_EQ(golden_tolerance(golden, Numerics::kExact), 1e-3);
}

TEST(Golden, SetupText) {
  EXPECT_EQ(setup_text({}), "portable ref");
  EXPECT_EQ(setup_text({.numerics = Numerics::kExact,
                        .isa = Isa::kAvx2,
                        .threads = 2,
                        .chunk_tokens = 7,
                        .stages = 3,
                        .together = true,
                        .backend = BackendKind::kFakedev}),
            "exact avx2 threads=2 chunk=7 stages=3 together fakedev");
}

TEST(Golden, FindsPastWhatCannotBeRead) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "golden_past_loops";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink("a_loop", folder / "a_loop");
  std::filesystem::create_directory_symlink(std::string(HR_TEST_DATA) + "/models/llama", folder / "llama");
  const std::vector<GoldenItem> items = find_goldens(folder.string());
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].kind, GoldenKind::kModel);
  std::filesystem::remove_all(folder);
}

TEST(Golden, FindsEachKind) {
  const std::string data = HR_TEST_DATA;
  const auto kind_of = [&](const std::string& path) { return find_goldens(data + path).at(0).kind; };
  EXPECT_EQ(kind_of("/models/llama"), GoldenKind::kModel);
  EXPECT_EQ(kind_of("/models/llama/"), GoldenKind::kModel);
  EXPECT_EQ(kind_of("/gguf/llama-F32.gguf"), GoldenKind::kModel);
  EXPECT_EQ(kind_of("/models/_tokenizer"), GoldenKind::kTokenizerJson);
  EXPECT_EQ(kind_of("/quant"), GoldenKind::kQuant);
  EXPECT_EQ(kind_of("/templates"), GoldenKind::kTemplates);
  EXPECT_EQ(kind_of("/tokenizers"), GoldenKind::kTokenizers);
  EXPECT_EQ(kind_of("/smollm2"), GoldenKind::kTexts);
  EXPECT_EQ(kind_of("/none"), GoldenKind::kNothing);
  EXPECT_EQ(kind_of("/quant/quant.json"), GoldenKind::kNothing);
  EXPECT_EQ(find_goldens(data + "/models/llama/")[0].name, "llama");
  EXPECT_GE(find_goldens(data + "/gguf").size(), 5u);
}

// All setups that a tiny model allows, on the reference and on the best instruction set, give the same bits.
TEST(Golden, SetupsAgreeInEveryBit) {
  const std::string folder = std::string(HR_TEST_DATA) + "/models/mistral";
  const ModelFiles files = open_model(folder);
  const GoldenModel golden = load_golden_model(folder + "/golden.safetensors", folder + "/golden.json");
  std::optional<uint64_t> hash;
  for (const Isa isa : {Isa::kRef, best_isa()}) {
    for (const int32_t chunk : {0, 1, 7}) {
      for (const bool together : {false, true}) {
        const GoldenSetup setup{.numerics = Numerics::kExact,
                                .isa = isa,
                                .threads = 2,
                                .chunk_tokens = chunk,
                                .stages = chunk == 7 ? 2 : 1,
                                .together = together};
        const GoldenOutcome outcome = run_golden_model("mistral", golden, files, setup);
        EXPECT_EQ(outcome.verdict, Verdict::kOk) << outcome.setup << ": " << outcome.reason;
        if (!hash) hash = outcome.logits_hash;
        EXPECT_EQ(outcome.logits_hash, hash) << outcome.setup;
      }
    }
  }
}

}  // namespace
}  // namespace headrace
