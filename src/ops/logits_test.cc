#include "ops/logits.h"

#include <array>

#include "ops/op_test.h"
#include "ops/vector_math.h"

namespace headrace {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A model's vocabulary and lengths around a block, besides those around a vector.
std::vector<int64_t> logit_sizes() {
  std::vector<int64_t> sizes = sizes_around(64);
  for (int64_t n : {int64_t{1}, int64_t{15}, int64_t{16}, int64_t{17}, kWeightBlock - 1, kWeightBlock, kWeightBlock + 1,
                    3 * kWeightBlock + 7, int64_t{49152}}) {
    sizes.push_back(n);
  }
  return sizes;
}

OP_TEST(ArgMax, MatchesReference, kArgMax) {
  for (const int64_t n : logit_sizes()) {
    for (const int64_t shift : {0, 1, 3}) {
      for (const int64_t special : {0, 5}) {
        const Rows x = random_rows({.dim = n,
                                    .shift = shift,
                                    .low = -9,
                                    .high = 9,
                                    .special = special,
                                    .seed = seed() + static_cast<uint64_t>(n)});
        EXPECT_EQ(fn()({x.data(), n}), reference()({x.data(), n})) << case_text(label(cat("n ", n, " shift ", shift)));
      }
    }
  }
}

OP_TEST(ArgMax, FirstOfEqualsAtEveryPlace, kArgMax) {
  constexpr int64_t kSize = 150;
  for (int64_t at = 0; at < kSize; ++at) {
    Rows x(1, kSize, 1, -3.0f);
    for (int64_t i = at; i < kSize; i += 7) x.data()[i] = 2.5f;
    if (at > 0) x.data()[at / 2] = kNan;
    EXPECT_EQ(fn()({x.data(), kSize}), at);
  }
  for (const float nothing : {kNan, -kInf}) {
    const Rows x(1, kSize, 0, nothing);
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{16}, kSize}) EXPECT_EQ(fn()({x.data(), n}), -1) << n;
  }
  Rows zeros(1, kSize, 0, -0.0f);
  zeros.data()[kSize - 1] = 0.0f;
  EXPECT_EQ(fn()({zeros.data(), kSize}), 0);
}

OP_TEST(LogitWeights, MatchesReference, kLogitWeights) {
  for (const int64_t n : logit_sizes()) {
    for (const float best : {9.0f, kInf}) {
      for (const float scale : {1.0f, 1 / 0.7f, 0.01f, 1e20f, kInf}) {
        Rows x = random_rows({.dim = n, .shift = n % 5, .low = -60, .high = 9, .seed = seed()});
        TestRandom random(seed());
        for (int64_t i = 0; i < n; ++i) {
          if (random.below(9) == 0)
            x.data()[i] = std::array{best, kNan, -kInf, -0.0f, -3e38f}[static_cast<size_t>(random.below(5))];
        }
        const float least = n % 2 == 0 ? 0.0f : 0.05f;
        const auto sums = static_cast<size_t>((n + kWeightBlock - 1) / kWeightBlock);
        Rows want(1, n), got(1, n);
        std::vector<double> want_sums(sums), got_sums(sums);
        reference()({x.data(), n, best, scale, least, want.data(), want_sums.data()});
        fn()({x.data(), n, best, scale, least, got.data(), got_sums.data()});
        const CaseLabel name = label(cat("n ", n, " best ", best, " scale ", scale));
        expect_bit_equal(name, got.span(), want.span());
        EXPECT_EQ(got_sums, want_sums) << case_text(name);
      }
    }
  }
}

OP_TEST(NextAbove, MatchesReference, kNextAbove) {
  for (const int64_t n : logit_sizes()) {
    const Rows x = random_rows({.dim = n, .shift = 1, .special = 11, .seed = seed()});
    for (const float threshold : {-kInf, -0.5f, 0.0f, 0.9f, 0.999f, kInf}) {
      int64_t steps = 0;
      for (int64_t at = 0; at < n && steps < 300; ++steps) {
        const int64_t want = reference()({x.data(), at, n, threshold});
        ASSERT_EQ(fn()({x.data(), at, n, threshold}), want) << case_text(label(cat("n ", n, " at ", at)));
        at = want + 1;
      }
      EXPECT_EQ(fn()({x.data(), n, n, threshold}), n);
    }
  }
}

TEST(LogitWeight, IsTheExponentialAndSumsAreExact) {
  const Rows x = random_rows({.dim = 5000, .low = -40, .high = 4, .seed = test_seed()});
  const float best = *std::ranges::max_element(x.span());
  constexpr float kScale = 1 / 0.8f;
  Rows w(1, 5000);
  std::vector<double> sums(5);
  kLogitWeights.reference().fn({x.data(), 5000, best, kScale, 0, w.data(), sums.data()});
  double total = 0, plain = 0;
  for (int64_t i = 0; i < 5000; ++i) {
    const double log_weight =
        (static_cast<double>(x.data()[i]) - static_cast<double>(best)) * static_cast<double>(kScale);
    // exp_f32 is within an ulp; the difference and the product round by 2^-24 of an exponent of at most 55 each.
    const double want = std::exp(log_weight);
    EXPECT_NEAR(static_cast<double>(w.data()[i]), want, want * (1 + 2 * 55) * 0x1p-23) << i;
    plain += static_cast<double>(w.data()[i]);
  }
  for (const double sum : sums) total += sum;
  EXPECT_NEAR(total, plain, plain * 5000 * 0x1p-53);
}

}  // namespace
}  // namespace headrace
