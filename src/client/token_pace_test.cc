#include "client/token_pace.h"

#include <gtest/gtest.h>

#include "client/record_maker.h"

namespace headrace::client {
namespace {

TEST(TokenPace, AveragesAreCorrectedForTheBeginning) {
  // alpha = 2 / 17, so each value weighs 15 / 17 of the one after it.
  const std::vector<double> averages = moving_averages(std::vector<double>{0.1, 0.3, 0.2}, 16);
  ASSERT_EQ(averages.size(), 3u);
  EXPECT_DOUBLE_EQ(averages[0], 0.1);
  EXPECT_DOUBLE_EQ(averages[1], 6.6 / 32);     // (17 * 0.3 + 15 * 0.1) / (17 + 15)
  EXPECT_DOUBLE_EQ(averages[2], 156.8 / 769);  // (289 * 0.2 + 255 * 0.3 + 225 * 0.1) / (289 + 255 + 225)
}

TEST(TokenPace, FirstTokenMayTakeAsLongAsThePromptAllows) {
  const PaceRule rule{.prompt_rate = 512, .answer_rate = 4};
  EXPECT_TRUE(keeps_pace_by_averages(completed_record(1, {2}, 512), rule)) << "exactly 1 s for 512 tokens";
  EXPECT_FALSE(keeps_pace_by_averages(completed_record(1, {2.001}, 512), rule));
  EXPECT_FALSE(keeps_pace_by_sums(completed_record(1, {2.001}, 512), rule));
}

TEST(TokenPace, AveragesMustStayBelowTheLimit) {
  const PaceRule rule{.answer_rate = 4};
  EXPECT_FALSE(keeps_pace_by_averages(completed_record(0, {0, 0.25}), rule)) << "the limit itself is too slow";
  EXPECT_TRUE(keeps_pace_by_averages(completed_record(0, {0, 0.125}), rule));
  // One long gap after short ones is averaged away: (17 * 0.35 + 15 * 0.05) / 32 = 0.209; not so (17 * 0.45 + 0.75)
  // / 32.
  EXPECT_TRUE(keeps_pace_by_averages(completed_record(0, {0, 0.05, 0.40}), rule));
  EXPECT_FALSE(keeps_pace_by_averages(completed_record(0, {0, 0.05, 0.50}), rule));
  // A plain average seeded with the first gap would let this pass: 0.05 + (0.45 - 0.05) * 2 / 17 = 0.097.
}

TEST(TokenPace, SumsMayReachTheLimit) {
  const PaceRule rule{.answer_rate = 4};
  EXPECT_TRUE(keeps_pace_by_sums(completed_record(0, {0, 0.25, 0.5}), rule));
  EXPECT_TRUE(keeps_pace_by_sums(completed_record(0, {0, 0.125, 0.5}), rule)) << "time saved may be spent";
  EXPECT_FALSE(keeps_pace_by_sums(completed_record(0, {0, 0.26, 0.5}), rule)) << "but not beforehand";
}

TEST(TokenPace, RateCountsGoodRequestsOverAllTheTime) {
  RequestRecord failed = completed_record(2, {2.01});
  failed.status = RequestStatus::kFailed;
  failed.end = 5;
  RequestRecord cancelled = completed_record(3, {3.01});
  cancelled.status = RequestStatus::kCancelled;
  cancelled.end = 50;
  // Gaps of 0.2 s: fast enough for 1 to 4 tokens a second, not for 6 and 8.
  const PaceFigures figures =
      pace_figures(std::vector<RequestRecord>{completed_record(1, {1.01, 1.21, 1.41}), failed, cancelled});
  ASSERT_EQ(figures.by_averages.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const bool is_good = i < 4;
    EXPECT_DOUBLE_EQ(figures.by_averages[i].good_ratio, is_good ? 0.5 : 0);
    EXPECT_DOUBLE_EQ(figures.by_averages[i].rate, is_good ? 0.25 : 0) << "one in (5 - 1) s";
    EXPECT_DOUBLE_EQ(figures.by_sums[i].rate, is_good ? 0.25 : 0);
  }
  EXPECT_EQ(figures.by_averages[5].answer_rate, 8);
  EXPECT_EQ(pace_figures({}).by_averages[0].rate, 0);
}

}  // namespace
}  // namespace headrace::client
