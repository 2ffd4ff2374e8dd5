#include "cluster/node_machine.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace headrace::cluster {
namespace {

const std::string kGguf = std::string(HR_TEST_DATA) + "/gguf/llama-Q8_0.gguf";
const std::string kOther = std::string(HR_TEST_DATA) + "/gguf/qwen2-Q8_0.gguf";
const StageUnits kUnits{.first_sublayer = 2, .end_sublayer = 6};
const StageUnits kHalves{.first_sublayer = 3, .end_sublayer = 7};
const ComputeRules kRules{.max_step_tokens = 32};

class NodeMachineTest : public testing::Test {
 protected:
  NodeMachineTest() : machine_(Isa::kRef, 1, CpuTuning{}) {}

  void open(const std::string& path, const ComputeRules& rules = kRules) {
    machine_.open(open_model(path), path, rules);
  }
  /// Whether weights were packed for it.
  bool load(const StageUnits& units) {
    bool packed = false;
    EXPECT_GT(machine_.load(units, [&](double) { packed = true; }), 0);
    return packed;
  }
  std::unique_ptr<Stage> make_stage(int32_t blocks) {
    return machine_.make_stage({.group_blocks = {blocks}, .max_seq_len = 64});
  }

  NodeMachine machine_;
};

TEST_F(NodeMachineTest, KeepsWhatItHasPacked) {
  open(kGguf);
  EXPECT_TRUE(load(kUnits));
  EXPECT_FALSE(load(kUnits));
  auto stage = make_stage(8);
  const Stage* const first = stage.get();
  machine_.give_back(std::move(stage));
  open(kGguf);
  EXPECT_TRUE(machine_.has_packed(kGguf, kUnits));
  EXPECT_FALSE(load(kUnits));
  stage = make_stage(8);
  EXPECT_EQ(stage.get(), first);
  // Another cache takes the same weights.
  const int64_t bytes = stage->kv_bytes();
  machine_.give_back(std::move(stage));
  EXPECT_FALSE(load(kUnits));
  EXPECT_EQ(make_stage(16)->kv_bytes(), 2 * bytes);
}

TEST_F(NodeMachineTest, PacksAnewForOtherUnitsModelsAndRules) {
  open(kGguf);
  EXPECT_TRUE(load(kUnits));
  EXPECT_TRUE(load({.first_sublayer = 2, .end_sublayer = 4}));
  machine_.give_back(make_stage(8));
  open(kOther);
  EXPECT_FALSE(machine_.has_packed(kOther, {.first_sublayer = 2, .end_sublayer = 4}));
  EXPECT_TRUE(load({.first_sublayer = 2, .end_sublayer = 4}));
  open(kOther, {.kv_dtype = DType::kF32, .max_step_tokens = 32});
  EXPECT_TRUE(load({.first_sublayer = 2, .end_sublayer = 4}));
}

TEST_F(NodeMachineTest, TellsTheBytesOfACacheBeforeItIsMade) {
  open(kGguf);
  EXPECT_THROW((void)machine_.kv_bytes({.group_blocks = {8}}), Error);
  for (const StageUnits& units : {kUnits, kHalves}) {
    load(units);
    const int64_t told = machine_.kv_bytes({.group_blocks = {8}});
    auto stage = make_stage(8);
    EXPECT_EQ(stage->kv_bytes(), told);
    machine_.give_back(std::move(stage));
  }
}

TEST_F(NodeMachineTest, RefusesWhatComesTooSoon) {
  EXPECT_THROW((void)machine_.probe(), Error);
  EXPECT_THROW((void)machine_.spec(), Error);
  EXPECT_THROW((void)machine_.load(kUnits, {}), Error);
  open(kGguf);
  EXPECT_THROW((void)make_stage(8), Error);
  load(kUnits);
  const auto stage = make_stage(8);
  EXPECT_THROW((void)make_stage(8), Error);
}

}  // namespace
}  // namespace headrace::cluster
