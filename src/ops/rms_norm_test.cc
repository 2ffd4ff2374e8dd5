#include "ops/rms_norm.h"

#include "ops/op_test.h"

namespace headrace {
namespace {

constexpr double kUnit = 0x1p-24;  // largest relative error of a rounding

OP_TEST(RmsNorm, MatchesReference, kRmsNorm) {
  for (int64_t dim : sizes_around(16)) {
    for (int64_t shift : {0, 1, 3}) {
      for (int64_t special : {0, 400}) {
        const Rows x = random_rows(
            {.rows = 3, .dim = dim, .shift = shift, .special = special, .seed = seed() + static_cast<uint64_t>(dim)});
        const Rows w = random_rows({.dim = dim, .shift = shift, .seed = seed() + 1});
        Rows got(3, dim, shift), want(3, dim, shift);
        fn()({x.data(), w.data(), got.data(), 3, dim, 1e-5f}, {0, 3});
        reference()({x.data(), w.data(), want.data(), 3, dim, 1e-5f}, {0, 3});
        expect_bit_equal(label(cat("dim ", dim, " shift ", shift, " special ", special)), got.span(), want.span());
      }
    }
  }
}

OP_TEST(RmsNorm, MatchesFormula, kRmsNorm) {
  for (int64_t dim : sizes_around(16)) {
    for (float size : {1e-12f, 1.0f, 1e15f}) {
      const Rows x = random_rows({.rows = 2, .dim = dim, .low = -size, .high = size, .seed = seed()});
      const Rows w = random_rows({.dim = dim, .seed = seed() + 1});
      Rows got(2, dim);
      const float eps = 1e-6f;
      fn()({x.data(), w.data(), got.data(), 2, dim, eps}, {0, 2});
      std::vector<double> want;
      for (int64_t r = 0; r < 2; ++r) {
        double sum = 0;
        for (int64_t i = 0; i < dim; ++i) sum += static_cast<double>(x.row(r)[i]) * static_cast<double>(x.row(r)[i]);
        const double factor = 1 / std::sqrt(sum / static_cast<double>(dim) + static_cast<double>(eps));
        for (int64_t i = 0; i < dim; ++i) {
          want.push_back(static_cast<double>(x.row(r)[i]) * factor * static_cast<double>(w.data()[i]));
        }
      }
      // Sum of same-sign terms: dim / 16 + 1 roundings in a chain, 4 in the tree, 2 for mean and eps, all halved by the
      // root; then root, division and two products.
      const double relative = (static_cast<double>(dim / 16 + 7) / 2 + 4) * kUnit * 1.01;
      expect_close(label(cat("dim ", dim, " size ", size)), got.span(), want,
                   [&](size_t i) { return relative * std::abs(want[i]) + 1e-44; });
    }
  }
}

OP_TEST(RmsNorm, InPlaceAndAnySplit, kRmsNorm) {
  const Rows x = random_rows({.rows = 7, .dim = 45, .seed = seed()});
  const Rows w = random_rows({.dim = 45, .seed = seed() + 1});
  Rows want(7, 45), got = x;
  reference()({x.data(), w.data(), want.data(), 7, 45, 1e-5f}, {0, 7});
  for (RowRange range : {RowRange{5, 7}, RowRange{0, 1}, RowRange{1, 1}, RowRange{1, 5}}) {
    fn()({got.data(), w.data(), got.data(), 7, 45, 1e-5f}, range);
  }
  expect_bit_equal(label("7 x 45 in place"), got.span(), want.span());
}

}  // namespace
}  // namespace headrace
