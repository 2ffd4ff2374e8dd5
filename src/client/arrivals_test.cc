#include "client/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "client/draws.h"
#include "client/rate_search.h"

namespace headrace::client {
namespace {

TEST(Arrivals, SumsAreStretchedToTheLast) {
  EXPECT_EQ(stretched_sums(std::vector<double>{1, 2, 1}, 8), (std::vector<double>{2, 6, 8}));
  EXPECT_EQ(stretched_sums(std::vector<double>{0, 0}, 8), (std::vector<double>{0, 0}));
}

TEST(Arrivals, EndWhereTheRateSays) {
  for (const double burstiness : {0.3, 1.0, 4.0}) {
    const std::vector<double> at = make_arrivals({.rate = 4, .burstiness = burstiness, .seed = 3}, 100);
    EXPECT_TRUE(std::ranges::is_sorted(at));
    EXPECT_DOUBLE_EQ(at.back(), 25);
    EXPECT_EQ(at, make_arrivals({.rate = 4, .burstiness = burstiness, .seed = 3}, 100));
    EXPECT_NE(at, make_arrivals({.rate = 4, .burstiness = burstiness, .seed = 4}, 100));
  }
}

TEST(Arrivals, AreEvenlySpacedWithoutBursts) {
  const std::vector<double> at = make_arrivals({.rate = 4, .burstiness = kUnlimited, .seed = 0}, 8);
  for (size_t i = 0; i < at.size(); ++i) EXPECT_DOUBLE_EQ(at[i], 0.25 * static_cast<double>(i + 1));
}

TEST(Arrivals, ComeAllAtOnceAtNoRate) {
  EXPECT_EQ(make_arrivals({.rate = kUnlimited, .burstiness = 1, .seed = 0}, 3), (std::vector<double>{0, 0, 0}));
}

TEST(Draws, GammaHasItsMoments) {
  constexpr int64_t kCount = 20000;
  for (const double shape : {0.25, 1.0, 2.0, 9.0}) {
    const Draws draws{.seed = 11, .kind = DrawKind::kGap};
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      const double x = draws.gamma(shape, i);
      ASSERT_GE(x, 0);
      sum += x;
      squares += (x - shape) * (x - shape);
    }
    // Mean and variance are both the shape. Standard errors: sqrt(shape / n), and for the mean of squares
    // sqrt((fourth central moment - shape^2) / n) with the moment 3 shape^2 + 6 shape; five of each.
    const double n = kCount;
    EXPECT_NEAR(sum / n, shape, 5 * std::sqrt(shape / n)) << shape;
    EXPECT_NEAR(squares / n, shape, 5 * std::sqrt((2 * shape * shape + 6 * shape) / n)) << shape;
  }
}

TEST(Draws, IntegersReachBothEnds) {
  const Draws draws{.seed = 1, .kind = DrawKind::kLengths};
  int64_t least = 100, most = 0;
  for (int64_t i = 0; i < 200; ++i) {
    least = std::min(least, draws.integer(3, 6, i));
    most = std::max(most, draws.integer(3, 6, i));
  }
  EXPECT_EQ(least, 3);
  EXPECT_EQ(most, 6);
}

/// The rates tried against a server that keeps its limits up to `capacity`.
std::vector<double> rates_tried(RateSearch& search, double capacity) {
  std::vector<double> rates;
  while (const std::optional<double> rate = search.next()) {
    rates.push_back(*rate);
    search.add(*rate <= capacity);
  }
  return rates;
}

TEST(RateSearch, StepsThenDoublesThenBisects) {
  RateSearch search({.first = 1, .step = 1, .linear_runs = 3, .precision = 0.5});
  EXPECT_EQ(rates_tried(search, 9.3), (std::vector<double>{1, 2, 3, 6, 12, 9, 10.5, 9.75, 9.375}));
  EXPECT_EQ(search.best(), 9);
}

TEST(RateSearch, HalvesWhereTheFirstIsTooHigh) {
  RateSearch search({.first = 8, .step = 1, .linear_runs = 3, .precision = 0.5});
  EXPECT_EQ(rates_tried(search, 1.2), (std::vector<double>{8, 4, 2, 1, 1.5}));
  EXPECT_EQ(search.best(), 1);
}

TEST(RateSearch, EndsWhereNothingIsWithinOrAllIs) {
  RateSearch none({.first = 1, .lowest = 0.1});
  EXPECT_EQ(rates_tried(none, 0), (std::vector<double>{1, 0.5, 0.25, 0.125}));
  EXPECT_FALSE(none.best());
  RateSearch all({.first = 1, .most_runs = 3});
  EXPECT_EQ(rates_tried(all, 1e9), (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(all.best(), 4);
  RateSearch bounded({.first = 1, .highest = 3});
  EXPECT_EQ(rates_tried(bounded, 1e9), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace headrace::client
