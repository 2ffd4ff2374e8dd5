#include "ops/vector_math.h"

#include "base/test_walk.h"
#include "ops/op_test.h"

namespace headrace {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Every 1021st bit pattern (a prime, so that all low bits come up): about 4.2 million floats of every size, all NaN
// kinds.
OP_TEST(Exp, MatchesReference, kExp) {
  constexpr uint64_t kStride = 1021;
  std::vector<float> x;
  TestWalk walk("floats of exp", 17);
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += kStride) {
    if (walk.takes_next()) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (float edge : {0.0f, -0.0f, kExpHigh, kExpLow, kInf, -kInf, 0x1p-149f}) {
    for (float v : {edge, std::nextafter(edge, kInf), std::nextafter(edge, -kInf)}) x.push_back(v);
  }
  std::vector<float> got(x.size()), want(x.size());
  fn()({x.data(), got.data()}, {0, static_cast<int64_t>(x.size())});
  reference()({x.data(), want.data()}, {0, static_cast<int64_t>(x.size())});
  expect_bit_equal(label("every 1021st float"), got, want);
}

OP_TEST(Exp, AnySplitInPlaceAndUnaligned, kExp) {
  for (int64_t n : sizes_around(16)) {
    const Rows x = random_rows({.dim = n, .shift = 3, .low = -90, .high = 90, .special = 9, .seed = seed()});
    Rows want(1, n);
    reference()({x.data(), want.data()}, {0, n});
    Rows got = x;
    const int64_t cut = n / 3;
    fn()({got.data(), got.data()}, {cut, n});
    fn()({got.data(), got.data()}, {0, cut});
    expect_bit_equal(label(cat("n ", n)), got.span(), want.span());
  }
}

TEST(ExpF32, WithinOneUlpOfTheFormula) {
  // Half an ulp from the last rounding, 0.09 from the fit, the rest from rounding r and the sum p - 1 (at most 0.42,
  // of which an ulp is at most half a unit of p's): below 1.
  double worst = 0;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1021) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(x >= kExpLow && x <= kExpHigh)) continue;
    const double want = std::exp(static_cast<double>(x));
    const auto nearest = static_cast<float>(want);
    const double ulp = static_cast<double>(std::nextafter(nearest, kInf)) - static_cast<double>(nearest);
    if (std::isinf(ulp)) continue;
    worst = std::max(worst, std::abs(static_cast<double>(exp_f32(x)) - want) / ulp);
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_GT(worst, 0.3);
}

TEST(ExpF32, SpecialValues) {
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(exp_f32(kInf), kInf);
  EXPECT_EQ(exp_f32(std::nextafter(kExpHigh, kInf)), kInf);
  EXPECT_LT(exp_f32(kExpHigh), kInf);
  EXPECT_GT(exp_f32(kExpHigh), 3.4e38f);
  EXPECT_EQ(std::bit_cast<uint32_t>(exp_f32(-kInf)), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(exp_f32(std::nextafter(kExpLow, -kInf))), 0u);
  EXPECT_GE(exp_f32(kExpLow), std::numeric_limits<float>::min());
  EXPECT_TRUE(std::isnan(exp_f32(std::numeric_limits<float>::quiet_NaN())));
}

TEST(SumLanes16, JoinsByTheTree) {
  float lanes[16];
  for (int c = 0; c < 16; ++c) lanes[c] = c == 0 ? 0x1p24f : 1.0f;  // 2^24 swallows a lone 1
  // Lane 0 meets 8 (lost), then 4 + 12 = 2, then 2 + 6 + 10 + 14 = 4, then 8 odd lanes.
  EXPECT_EQ(sum_lanes16(lanes), 0x1p24f + 2 + 4 + 8);
}

}  // namespace
}  // namespace headrace
