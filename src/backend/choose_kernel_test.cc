#include "backend/choose_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace headrace {
namespace {

using Fn = int (*)();
int reference() { return 0; }
int avx2_first() { return 1; }
int avx2_second() { return 2; }
int avx512() { return 3; }

constexpr OpTable<Fn> kTable{
    "sample", {{Isa::kRef, reference}, {Isa::kAvx2, avx2_first}, {Isa::kAvx512, avx512}, {Isa::kAvx2, avx2_second}}};

/// What the chooser takes when the functions of `broken` do not reproduce, and whom it asked.
struct Outcome {
  int chosen;
  std::vector<int> asked;
};
Outcome choose(Isa isa, const std::vector<int>& broken) {
  Outcome outcome{};
  const auto reproduces = [&](Fn fn) {
    outcome.asked.push_back(fn());
    return std::find(broken.begin(), broken.end(), fn()) == broken.end();
  };
  outcome.chosen = choose_kernel(kTable, isa, reproduces).fn();
  return outcome;
}

TEST(ChooseKernel, TakesTheBestThatTheClassAllows) {
  EXPECT_EQ(choose(Isa::kAmx, {}).chosen, 3);
  EXPECT_EQ(choose(Isa::kAvx512, {}).chosen, 3);
  EXPECT_EQ(choose(Isa::kAvx2, {}).chosen, 2);
  EXPECT_EQ(choose(Isa::kRef, {}).chosen, 0);
}

TEST(ChooseKernel, AKernelThatGivesAnotherAnswerIsPassedOver) {
  const Outcome one = choose(Isa::kAvx512, {3});
  EXPECT_EQ(one.chosen, 2);
  EXPECT_THAT(one.asked, testing::ElementsAre(3, 2));
  EXPECT_EQ(choose(Isa::kAvx512, {2, 3}).chosen, 1);
  EXPECT_EQ(choose(Isa::kAvx512, {2}).chosen, 3);
}

TEST(ChooseKernel, TheReferenceIsTakenUnasked) {
  const Outcome outcome = choose(Isa::kAmx, {0, 1, 2, 3});
  EXPECT_EQ(outcome.chosen, 0);
  EXPECT_THAT(outcome.asked, testing::ElementsAre(3, 2, 1));
}

TEST(ChooseKernel, TheWarningNamesOperatorAndKernel) {
  testing::internal::CaptureStderr();
  (void)choose(Isa::kAvx512, {3});
  const std::string text = testing::internal::GetCapturedStderr();
  if (log_enabled(LogLevel::kWarn)) {
    EXPECT_THAT(text, testing::HasSubstr("sample: the avx512 kernel"));
  } else {
    EXPECT_EQ(text, "");
  }
}

}  // namespace
}  // namespace headrace
