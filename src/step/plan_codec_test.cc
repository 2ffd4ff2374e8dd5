#include "step/plan_codec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace headrace {
namespace {

StepPlan random_plan() {
  StepPlan plan;
  plan.epoch = EpochId{*rc::gen::arbitrary<uint32_t>()};
  plan.step_id = StepId{*rc::gen::arbitrary<uint64_t>()};
  const auto number = [] { return *rc::gen::arbitrary<int32_t>(); };
  const auto sequence = [] { return SequenceId{*rc::gen::arbitrary<uint64_t>()}; };
  const auto count = [] { return *rc::gen::inRange(0, 6); };
  for (int i = count(); i > 0; --i) plan.rows.push_back({sequence(), number(), number(), number()});
  for (int i = count(); i > 0; --i) plan.tokens.push_back(number());
  for (int i = count(); i > 0; --i) {
    TableChange change{sequence(), number(), number(), {}};
    for (int b = count(); b > 0; --b) change.blocks.push_back(BlockId{number()});
    plan.table_changes.push_back(change);
  }
  for (int i = count(); i > 0; --i) plan.retired.push_back(sequence());
  for (int i = count(); i > 0; --i) plan.copies.push_back({number(), BlockId{number()}, BlockId{number()}});
  return plan;
}

RC_GTEST_PROP(PlanCodec, RoundTrips, ()) {
  const StepPlan plan = random_plan();
  std::vector<std::byte> bytes;
  encode_plan(plan, bytes);
  const Result<StepPlan> back = decode_plan(bytes);
  RC_ASSERT(back.ok());
  RC_ASSERT(back.value() == plan);
}

RC_GTEST_PROP(PlanCodec, RefusesEveryTruncationAndSurplus, ()) {
  std::vector<std::byte> bytes;
  encode_plan(random_plan(), bytes);
  for (size_t n = 0; n < bytes.size(); ++n) RC_ASSERT(!decode_plan(std::span(bytes).first(n)).ok());
  bytes.push_back(std::byte{0});
  RC_ASSERT(!decode_plan(bytes).ok());
}

TEST(PlanCodec, HugeCountsAllocateNothing) {
  std::vector<std::byte> bytes;
  encode_plan(StepPlan{}, bytes);
  for (size_t i = 16; i < 20; ++i) bytes[i] = std::byte{0xff};  // the count of rows
  const Result<StepPlan> plan = decode_plan(bytes);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), ErrorCode::kCorrupt);
}

/// Seeds of another version would leave the fuzzer to find the present one by itself.
TEST(PlanCodec, FuzzSeedsArePlans) {
  int seeds = 0;
  for (const auto& file : std::filesystem::directory_iterator(HR_TEST_DATA "/fuzz/plan_codec_fuzz")) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_TRUE(decode_plan(std::as_bytes(std::span(text))).ok()) << file.path();
    ++seeds;
  }
  EXPECT_GE(seeds, 5);
}

}  // namespace
}  // namespace headrace
