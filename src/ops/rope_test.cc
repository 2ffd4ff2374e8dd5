#include "ops/rope.h"

#include "ops/op_test.h"

namespace headrace {
namespace {

constexpr double kUnit = 0x1p-24;  // largest relative error of a rounding

OP_TEST(RopeTable, MatchesFormula, kRopeTable) {
  const std::vector<int32_t> positions{0, 1, 17, 4095, 131071, 2147483647};
  const int64_t rows = static_cast<int64_t>(positions.size()), half = 33;
  std::vector<float> inv_freq;
  for (int64_t i = 0; i < half; ++i) {
    inv_freq.push_back(static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half))));
  }
  const float scale = 1.25f;
  Rows got(rows, 2 * half), want = got;
  const auto run = [&](RopeTableFn table, float* out, RowRange range) {
    table({positions.data(), inv_freq.data(), out, rows, half, scale}, range);
  };
  run(reference(), want.data(), {0, rows});
  run(fn(), got.data(), {2, rows});
  run(fn(), got.data(), {0, 2});
  expect_bit_equal(label("6 positions"), got.span(), want.span());

  std::vector<double> formula;
  for (int32_t pos : positions) {
    for (int part = 0; part < 2; ++part) {
      for (float f : inv_freq) {
        const double angle =
            static_cast<double>(pos) * static_cast<double>(f);  // exact in f64 would need 55 bits: as ours
        formula.push_back(1.25 * (part == 0 ? std::cos(angle) : std::sin(angle)));
      }
    }
  }
  // One rounding to f32; two ulps of f64 (its own, libm's) and a product are below 2^-50.
  expect_close(label("formula"), got.span(), formula,
               [&](size_t i) { return std::abs(formula[i]) * kUnit * 1.0001 + 0x1p-149; });
}

OP_TEST(Rope, MatchesReferenceAndFormula, kRope) {
  for (RopeLayout layout : {RopeLayout::kHalfSplit, RopeLayout::kInterleaved}) {
    for (int64_t half : {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 32, 33, 48, 64}) {
      for (int64_t beyond : {0, 1, 6}) {  // values of a head that are not rotated
        const int64_t heads = 3, head_dim = 2 * half + beyond;
        const Rows x = random_rows({.rows = 3, .dim = heads * head_dim, .shift = beyond, .seed = seed()});
        const Rows table = random_rows({.rows = 3, .dim = 2 * half, .seed = seed() + 1});
        Rows got = x, want = x;
        reference()({want.data(), table.data(), 3, heads, head_dim, half, layout}, {0, 3});
        fn()({got.data(), table.data(), 3, heads, head_dim, half, layout}, {1, 3});
        fn()({got.data(), table.data(), 3, heads, head_dim, half, layout}, {0, 1});
        const std::string shape =
            cat(layout == RopeLayout::kHalfSplit ? "halves " : "neighbours ", half, " beyond ", beyond);
        expect_bit_equal(label(shape), got.span(), want.span());

        std::vector<double> formula(x.span().begin(), x.span().end());
        std::vector<double> bound(formula.size(), 0.0);  // values beyond the rotation: exactly as before
        for (int64_t r = 0; r < 3; ++r) {
          for (int64_t h = 0; h < heads; ++h) {
            for (int64_t i = 0; i < half; ++i) {
              const double c = table.row(r)[i], s = table.row(r)[half + i];
              const int64_t base = (r * heads + h) * head_dim;
              const auto ia = static_cast<size_t>(base + (layout == RopeLayout::kHalfSplit ? i : 2 * i));
              const auto ib = static_cast<size_t>(base + (layout == RopeLayout::kHalfSplit ? i + half : 2 * i + 1));
              const double a = formula[ia], b = formula[ib];
              formula[ia] = a * c - b * s;
              formula[ib] = b * c + a * s;
              // One product and the sum are rounded, each at most |a| |c| + |b| |s| (or with a and b changed) in size.
              bound[ia] = 2.01 * kUnit * (std::abs(a * c) + std::abs(b * s));
              bound[ib] = 2.01 * kUnit * (std::abs(b * c) + std::abs(a * s));
            }
          }
        }
        expect_close(label(shape), got.span(), formula, [&](size_t i) { return bound[i]; });
      }
    }
  }
}

OP_TEST(Rope, SpecialValuesMatchReference, kRope) {
  for (RopeLayout layout : {RopeLayout::kHalfSplit, RopeLayout::kInterleaved}) {
    const Rows x = random_rows({.rows = 4, .dim = 5 * 38, .special = 6, .seed = seed()});
    const Rows table = random_rows({.rows = 4, .dim = 38, .special = 20, .seed = seed() + 1});
    Rows got = x, want = x;
    fn()({got.data(), table.data(), 4, 5, 38, 19, layout}, {0, 4});
    reference()({want.data(), table.data(), 4, 5, 38, 19, layout}, {0, 4});
    expect_bit_equal(label("4 x 5 x 38"), got.span(), want.span());
  }
}

}  // namespace
}  // namespace headrace
