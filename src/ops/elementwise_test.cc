#include "ops/elementwise.h"

#include "ops/op_test.h"

namespace headrace {
namespace {

constexpr double kUnit = 0x1p-24;  // largest relative error of a rounding

struct Pair {
  Rows a, b;
};
Pair random_pair(int64_t rows, int64_t dim, int64_t shift, float size, int64_t special, uint64_t seed) {
  return {random_rows({rows, dim, shift, -size, size, special, seed}),
          random_rows({rows, dim, shift, -size, size, special, seed + 1})};
}

OP_TEST(Add, MatchesReferenceAndFormula, kAdd) {
  for (int64_t dim : sizes_around(16)) {
    for (int64_t shift : {0, 1, 3}) {
      const Pair in = random_pair(3, dim, shift, 2, 11, seed() + static_cast<uint64_t>(dim));
      Rows got(3, dim, shift), want(3, dim, shift), formula(3, dim);
      fn()({in.a.data(), in.b.data(), got.data(), 3, dim}, {0, 3});
      reference()({in.a.data(), in.b.data(), want.data(), 3, dim}, {0, 3});
      for (int64_t i = 0; i < 3 * dim; ++i) formula.data()[i] = in.a.data()[i] + in.b.data()[i];
      expect_bit_equal(label(cat("dim ", dim, " shift ", shift)), got.span(), want.span());
      expect_bit_equal(label(cat("dim ", dim, " formula")), got.span(), formula.span());
    }
  }
}

OP_TEST(Add, InPlaceAndAnySplit, kAdd) {
  const Pair in = random_pair(7, 21, 1, 2, 0, seed());
  Rows want(7, 21), left = in.a, right = in.b;
  reference()({in.a.data(), in.b.data(), want.data(), 7, 21}, {0, 7});
  for (RowRange range : {RowRange{3, 7}, RowRange{0, 2}, RowRange{2, 3}}) {
    fn()({left.data(), in.b.data(), left.data(), 7, 21}, range);
    fn()({in.a.data(), right.data(), right.data(), 7, 21}, range);
  }
  expect_bit_equal(label("y = a"), left.span(), want.span());
  expect_bit_equal(label("y = b"), right.span(), want.span());
}

OP_TEST(Add, WritesOnlyItsRows, kAdd) {
  const Pair in = random_pair(3, 19, 0, 2, 0, seed());
  Rows got(3, 19, 0, 7.0f);
  fn()({in.a.data(), in.b.data(), got.data(), 3, 19}, {1, 2});
  for (int64_t i = 0; i < 19; ++i) {
    EXPECT_EQ(got.row(0)[i], 7.0f);
    EXPECT_EQ(got.row(2)[i], 7.0f);
  }
}

OP_TEST(SiluMul, MatchesReference, kSiluMul) {
  for (int64_t dim : sizes_around(16)) {
    for (int64_t shift : {0, 1, 3}) {
      for (float size : {1.0f, 30.0f, 200.0f}) {
        const Pair in = random_pair(3, dim, shift, size, 11, seed() + static_cast<uint64_t>(dim));
        Rows got(3, dim, shift), want(3, dim, shift);
        fn()({in.a.data(), in.b.data(), got.data(), 3, dim}, {0, 3});
        reference()({in.a.data(), in.b.data(), want.data(), 3, dim}, {0, 3});
        expect_bit_equal(label(cat("dim ", dim, " shift ", shift, " size ", size)), got.span(), want.span());
      }
    }
  }
}

OP_TEST(SiluMul, MatchesFormula, kSiluMul) {
  const int64_t dim = 4001;
  const Pair in = random_pair(1, dim, 0, 80, 0, seed());
  Rows got(1, dim);
  fn()({in.a.data(), in.b.data(), got.data(), 1, dim}, {0, 1});
  std::vector<double> want;
  for (int64_t i = 0; i < dim; ++i) {
    const double x = in.a.data()[i];
    want.push_back(x / (1 + std::exp(-x)) * static_cast<double>(in.b.data()[i]));
  }
  // exp: one ulp, two units; sum, quotient and product: a unit each.
  expect_close(label("4001 values"), got.span(), want, [&](size_t i) { return 5.01 * kUnit * std::abs(want[i]); });
}

OP_TEST(SiluMul, InPlaceAndAnySplit, kSiluMul) {
  const Pair in = random_pair(7, 21, 1, 9, 0, seed());
  Rows want(7, 21), left = in.a, right = in.b;
  reference()({in.a.data(), in.b.data(), want.data(), 7, 21}, {0, 7});
  for (RowRange range : {RowRange{3, 7}, RowRange{0, 2}, RowRange{2, 3}}) {
    fn()({left.data(), in.b.data(), left.data(), 7, 21}, range);
    fn()({in.a.data(), right.data(), right.data(), 7, 21}, range);
  }
  expect_bit_equal(label("y = gate"), left.span(), want.span());
  expect_bit_equal(label("y = up"), right.span(), want.span());
}

OP_TEST(GatherRows, TakesTheNamedRows, kGatherRows) {
  const Rows x = random_rows({.rows = 9, .dim = 13, .seed = seed()});
  const std::vector<int32_t> index{8, 0, 3, 3};
  Rows got(4, 13), want(4, 13);
  for (int64_t r = 0; r < 4; ++r) std::copy_n(x.row(index[static_cast<size_t>(r)]), 13, want.row(r));
  fn()({x.data(), index.data(), got.data(), 4, 13}, {2, 4});
  fn()({x.data(), index.data(), got.data(), 4, 13}, {0, 2});
  expect_bit_equal(label("4 of 9 rows"), got.span(), want.span());
}

}  // namespace
}  // namespace headrace
