#include "sample/philox.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

using Words = std::array<uint32_t, 4>;

// The vectors that the authors publish with their library (Random123, kat_vectors).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformDependsOnEachPartOfItsKey) {
  const double u = uniform_at(1, 2, 3);
  EXPECT_EQ(u, uniform_at(1, 2, 3));
  EXPECT_NE(u, uniform_at(2, 2, 3));
  EXPECT_NE(u, uniform_at(1 + (uint64_t{1} << 32), 2, 3));
  EXPECT_NE(u, uniform_at(1, 3, 3));
  EXPECT_NE(u, uniform_at(1, 2, 4));
  EXPECT_NE(u, uniform_at(1, 2, 3 + (int64_t{1} << 32)));
}

TEST(Philox, UniformFillsTheUnitInterval) {
  constexpr int kDraws = 100000;
  double sum = 0;
  double least = 1;
  double most = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = uniform_at(7, 0, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    least = std::min(least, u);
    most = std::max(most, u);
  }
  // The mean's deviation is 1 / sqrt(12 n) = 0.00091; five of them. P(no draw in an end of 2e-4) = e^-20.
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * 0.00091);
  EXPECT_LT(least, 2e-4);
  EXPECT_GT(most, 1 - 2e-4);
}

}  // namespace
}  // namespace headrace
