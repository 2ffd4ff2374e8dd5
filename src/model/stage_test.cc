// What a plan makes of the cache shows in a stage's logits, bit for bit.
#include "model/stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backend/cpu/cpu_backend.h"
#include "backend/fakedev/fakedev_backend.h"
#include "files/model_files.h"
#include "kv/block_io.h"

namespace headrace {
namespace {

constexpr int32_t kBlocks = 12;
constexpr SequenceId kA{1}, kB{2}, kC{3};

struct Case {
  const char* model;
  bool fakedev;
  DType kv_dtype;
};

/// A whole model as one stage, and plans for it.
class StageTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto [model, fakedev, kv_dtype] = GetParam();
    backend_ = fakedev ? make_fakedev_backend(int64_t{1} << 28) : make_cpu_backend(pool_, best_isa());
    const ModelFiles files = open_model(std::string(HR_TEST_DATA "/models/") + model);
    spec_ = make_arch_spec(files);
    StageWeights weights(*backend_, pool_, files, spec_, Numerics::kPortable, whole_model(spec_), {});
    const StageConfig config{.kv_dtype = kv_dtype,
                             .group_blocks = std::vector<int32_t>(spec_.cache_groups.size(), kBlocks),
                             .max_tokens = 128,
                             .max_seq_len = 160};
    stage_ = std::make_unique<Stage>(*backend_, spec_, std::move(weights), config, comm_);
  }

  /// Adds `tokens` from `first_pos` on, of which the last one gives an output.
  static void add_row(StepPlan& plan, SequenceId id, int32_t first_pos, const std::vector<TokenId>& tokens) {
    plan.rows.push_back({id, first_pos, static_cast<int32_t>(tokens.size()), 1});
    plan.tokens.insert(plan.tokens.end(), tokens.begin(), tokens.end());
  }
  /// The sequence's whole table in every group.
  void set_table(StepPlan& plan, SequenceId id, const std::vector<int32_t>& blocks) const {
    for (int32_t group = 0; group < std::ssize(spec_.cache_groups); ++group) {
      TableChange& change = plan.table_changes.emplace_back(TableChange{id, group, 0, {}});
      for (const int32_t block : blocks) change.blocks.push_back(BlockId{block});
    }
  }
  void add_copy(StepPlan& plan, int32_t from, int32_t to) const {
    for (int32_t group = 0; group < std::ssize(spec_.cache_groups); ++group) {
      plan.copies.push_back({group, BlockId{from}, BlockId{to}});
    }
  }
  /// The logits of each row.
  std::vector<std::vector<float>> run(const StepPlan& plan) {
    StageOutput out;
    const auto ran = stage_->run(plan, {}, out);
    EXPECT_TRUE(ran.ok());
    std::vector<std::vector<float>> logits;
    for (size_t i = 0; i < out.result.outputs.size(); ++i) {
      const auto begin = out.result.data.begin() + static_cast<std::ptrdiff_t>(i) * out.result.width;
      logits.emplace_back(begin, begin + out.result.width);
    }
    return logits;
  }
  /// Overwrites a block of every layer with NaN.
  void spoil(int32_t block) {
    BlockIo io(*backend_, stage_->slabs());
    std::vector<BlockPiece> pieces;
    for (const KvSlabs::Layer& layer : stage_->slabs().layers()) {
      const auto bytes = static_cast<size_t>(kv_block_bytes(layer.layout));
      // All ones are a NaN in every float type, so in the scales of int8 too.
      pieces.push_back({.layer = layer.number,
                        .group = layer.group,
                        .block = BlockId{block},
                        .layout = layer.layout,
                        .bytes = std::vector<std::byte>(bytes, std::byte{0xff})});
    }
    ASSERT_TRUE(io.write(std::move(pieces), nullptr).ok());
    io.wait();
  }
  static bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0 &&
           std::ranges::none_of(a, [](float v) { return v != v; });
  }
  static std::vector<TokenId> tokens(int32_t n) {
    std::vector<TokenId> tokens;
    for (int32_t i = 0; i < n; ++i) tokens.push_back((i * i * 7 + i * 3) % 500);
    return tokens;
  }

  ComputePool pool_{2};
  SingleRank comm_;
  std::unique_ptr<Backend> backend_;
  ArchSpec spec_;
  std::unique_ptr<Stage> stage_;
};

std::string case_name(const testing::TestParamInfo<Case>& test) {
  return cat(test.param.model, test.param.fakedev ? "_fakedev_" : "_cpu_", dtype_name(test.param.kv_dtype));
}

constexpr Case kWindowModels[] = {{"mistral", false, DType::kF32},
                                  {"mistral", false, DType::kF16},
                                  {"mistral", false, DType::kBF16},
                                  {"mistral", false, DType::kI8},
                                  {"mistral", true, DType::kF16}};
INSTANTIATE_TEST_SUITE_P(Window, StageTest, testing::ValuesIn(kWindowModels), case_name);
INSTANTIATE_TEST_SUITE_P(Full, StageTest, testing::Values(Case{"qwen2", true, DType::kI8}), case_name);

class StageWindowTest : public StageTest {};
INSTANTIATE_TEST_SUITE_P(Window, StageWindowTest, testing::ValuesIn(kWindowModels), case_name);

TEST_P(StageTest, AForkWhoseBlockWasCopiedGoesOnAsIfItHadComputedItAll) {
  const std::vector<TokenId> prompt = tokens(20);
  StepPlan first;
  set_table(first, kA, {0, 1});
  add_row(first, kA, 0, prompt);
  run(first);

  // The parent writes to its own block in the same step. Its copy is copied once more.
  StepPlan forks;
  add_copy(forks, 1, 5);
  add_copy(forks, 5, 6);
  set_table(forks, kB, {0, 5});
  set_table(forks, kC, {0, 6});
  add_row(forks, kA, 20, {1});
  add_row(forks, kB, 20, {2});
  add_row(forks, kC, 20, {3});
  const auto got = run(forks);

  for (TokenId next = 1; next <= 3; ++next) {
    std::vector<TokenId> all = prompt;
    all.push_back(next);
    StepPlan alone;
    alone.retired = {kA, kB, kC};
    set_table(alone, kA, {8, 9});
    add_row(alone, kA, 0, all);
    EXPECT_TRUE(same(got.at(static_cast<size_t>(next) - 1), run(alone).at(0))) << next;
  }
}

TEST_P(StageTest, AStepOfCopiesAloneCopies) {
  const std::vector<TokenId> prompt = tokens(9);
  StepPlan first;
  set_table(first, kA, {2});
  add_row(first, kA, 0, prompt);
  run(first);
  StepPlan copies;
  add_copy(copies, 2, 4);
  EXPECT_TRUE(run(copies).empty());
  spoil(2);
  StepPlan second;
  set_table(second, kB, {4});
  add_row(second, kB, 9, {7});
  const auto got = run(second).at(0);
  std::vector<TokenId> all = prompt;
  all.push_back(7);
  StepPlan alone;
  set_table(alone, kC, {8});
  add_row(alone, kC, 0, all);
  EXPECT_TRUE(same(got, run(alone).at(0)));
}

/// Entries before the window may name any block: one that is spoilt, even one that another sequence writes now.
TEST_P(StageWindowTest, BlocksBeforeTheWindowAreNotRead) {
  ASSERT_EQ(spec_.cache_groups.at(0).window, 16);
  const std::vector<TokenId> prompt = tokens(70);
  const auto logits_of = [&](const std::vector<int32_t>& table, const std::vector<int32_t>& later) {
    StepPlan first;
    first.retired = {kA, kB};
    set_table(first, kA, table);
    add_row(first, kA, 0, prompt);
    std::vector<std::vector<float>> logits = run(first);
    // Position 70 sees 55 to 70: blocks 3 and 4.
    for (int32_t block = 0; block < kBlocks; ++block) {
      const bool seen = block == table[3] || block == table[4];
      if (!seen && !std::ranges::equal(table, later)) spoil(block);
    }
    StepPlan more;
    set_table(more, kA, later);
    set_table(more, kB, {table[0]});
    add_row(more, kA, 70, {1, 2, 3});
    add_row(more, kB, 0, {4});
    for (auto& row : run(more)) logits.push_back(std::move(row));
    return logits;
  };
  const auto want = logits_of({0, 1, 2, 3, 4}, {0, 1, 2, 3, 4});
  const auto got = logits_of({5, 1, 6, 3, 4}, {5, 5, 11, 3, 4});
  ASSERT_EQ(want.size(), 3u);
  ASSERT_EQ(got.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same(got[i], want[i])) << i;
  EXPECT_FALSE(same(logits_of({0, 1, 2, 3, 4}, {0, 1, 2, 5, 4}).at(1), want[1])) << "this one is seen";
}

TEST_P(StageTest, AShrunkCacheTakesFewerBlocksAndAGrownOneMore) {
  const auto group = static_cast<int32_t>(spec_.cache_groups.size()) - 1;
  StepPlan plan;
  set_table(plan, kA, {kBlocks - 1});
  add_row(plan, kA, 0, {1, 2, 3});
  const auto want = run(plan).at(0);
  stage_->resize_cache(group, 4);
  StageOutput out;
  EXPECT_FALSE(stage_->run(plan, {}, out).ok());
  StepPlan low;
  low.retired = {kA};
  set_table(low, kB, {3});
  add_row(low, kB, 0, {1, 2, 3});
  EXPECT_TRUE(same(run(low).at(0), want));
  stage_->resize_cache(group, kBlocks);
  EXPECT_TRUE(same(run(plan).at(0), want));
}

}  // namespace
}  // namespace headrace
