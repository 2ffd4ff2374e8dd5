#include "engine/load_figures.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(LoadFigures, PercentilesAreInterpolated) {
  const Spread spread = spread_of({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(spread.mean, 2.5);
  EXPECT_DOUBLE_EQ(spread.median, 2.5);
  EXPECT_DOUBLE_EQ(spread.p90, 3.7);
  EXPECT_DOUBLE_EQ(spread.max, 4);
  EXPECT_DOUBLE_EQ(spread.std * spread.std, 1.25);
  EXPECT_DOUBLE_EQ(spread_of({7}).p99, 7);
}

TEST(LoadFigures, FollowTheDefinitions) {
  const std::vector<RequestTimes> requests{{.arrival = 1, .prompt_tokens = 10, .tokens = {1.5, 1.6, 1.9}},
                                           {.arrival = 2, .prompt_tokens = 20, .tokens = {5}}};
  const LoadFigures figures = load_figures(requests);
  EXPECT_EQ(figures.requests, 2);
  EXPECT_EQ(figures.input_tokens, 30);
  EXPECT_EQ(figures.output_tokens, 4);
  EXPECT_DOUBLE_EQ(figures.duration, 4);
  EXPECT_DOUBLE_EQ(figures.request_rate, 0.5);
  EXPECT_DOUBLE_EQ(figures.output_rate, 1);
  EXPECT_DOUBLE_EQ(figures.total_rate, 8.5);
  EXPECT_DOUBLE_EQ(figures.peak_rate, 3);
  EXPECT_DOUBLE_EQ(figures.ttft.mean, (0.5 + 3) / 2);
  EXPECT_DOUBLE_EQ(figures.itl.max, 1.9 - 1.6);
  EXPECT_DOUBLE_EQ(figures.tpot.mean, 0.2) << "the request of one token has none";
  EXPECT_DOUBLE_EQ(figures.e2el.max, 3);
}

TEST(LoadFigures, OfNothingAreZero) { EXPECT_EQ(load_figures({}).duration, 0); }

}  // namespace
}  // namespace headrace
