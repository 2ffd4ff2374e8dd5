#include "ops/activation.h"

#include "ops/op_test.h"

namespace headrace {
namespace {

AlignedBytes quantize(QuantizeFn fn, ActForm form, const Rows& x) {
  AlignedBytes out(act_row_bytes(form, x.dim()) * x.rows());
  fn({.x = x.data(), .y = {.form = form, .data = out.data(), .rows = x.rows(), .k = x.dim()}}, {0, x.rows()});
  return out;
}

/// Blocks of every kind: ordinary, with special values, all zero, so small that 127 / amax overflows, halves (ties).
std::vector<Rows> awkward_rows(int64_t k, uint64_t seed) {
  std::vector<Rows> all;
  for (int64_t shift : {0, 1, 3}) all.push_back(random_rows({.rows = 3, .dim = k, .shift = shift, .seed = seed}));
  for (int64_t special : {2, 40, 400})
    all.push_back(random_rows({.rows = 3, .dim = k, .special = special, .seed = seed}));
  all.push_back(Rows(2, k));
  all.push_back(random_rows({.rows = 2, .dim = k, .low = -1e-38f, .high = 1e-38f, .seed = seed}));
  all.push_back(random_rows({.rows = 2, .dim = k, .low = -1e-44f, .high = 1e-44f, .seed = seed}));
  all.push_back(random_rows({.rows = 2, .dim = k, .low = -3e38f, .high = 3e38f, .seed = seed}));
  for (int64_t period : {5, 37, 200}) {  // outliers: at most 4 of 32, just above and far above the limit
    Rows spiked = random_rows({.rows = 3, .dim = k, .seed = seed});
    for (int64_t i = 0; i < 3 * k; i += period) spiked.data()[i] *= i % 3 == 0 ? 9.0f : -3e4f;
    all.push_back(std::move(spiked));
  }
  Rows steps(1, k);  // as many outliers as two rounds can find, nearly
  for (int64_t i = 0; i < k; ++i) steps.data()[i] = i % 9 == 0 ? 1e6f : i % 9 == 1 ? 1e2f : 1e-2f;
  all.push_back(std::move(steps));
  Rows ties(1, k);
  for (int64_t i = 0; i < k; ++i) ties.data()[i] = i % 32 == 0 ? 127.0f : static_cast<float>(i % 254 - 127) + 0.5f;
  all.push_back(std::move(ties));
  return all;
}

void expect_matches_reference(QuantizeFn fn, QuantizeFn reference, ActForm form, int64_t step, const CaseLabel& label) {
  for (int64_t k : {step, 2 * step, 3 * step, 7 * step, 18 * step}) {
    int kind = 0;
    for (const Rows& x : awkward_rows(k, label.seed)) {
      CaseLabel here = label;
      here.shape = cat(label.shape, " k ", k, ", kind ", kind++);
      expect_bit_equal(here, quantize(fn, form, x).span(), quantize(reference, form, x).span());
    }
  }
}

OP_TEST(Quantize32, MatchesReference, kQuantizeQ8x32) {
  expect_matches_reference(fn(), reference(), ActForm::kQ8x32, 32, label(""));
}
OP_TEST(Quantize256, MatchesReference, kQuantizeQ8x256) {
  expect_matches_reference(fn(), reference(), ActForm::kQ8x256, 256, label(""));
  expect_matches_reference(fn(), reference(), ActForm::kQ8x256, 32, label("last block short"));
}

OP_TEST(Quantize256Twice, MatchesReference, kQuantizeQ8x256Twice) {
  expect_matches_reference(fn(), reference(), ActForm::kQ8x256Twice, 256, label(""));
  expect_matches_reference(fn(), reference(), ActForm::kQ8x256Twice, 32, label("last block short"));
}

/// scale * q is within half a step of x, plus what the roundings of inv, of x * inv and of scale move it: 4 half-ulps
/// of amax. The sums are those of the q's.
void expect_close_to_input(QuantizeFn fn, ActForm form, int64_t block, int64_t sum_block) {
  const Rows x = random_rows({.rows = 4, .dim = 1120, .low = -5, .high = 3, .seed = test_seed()});
  const AlignedBytes out = quantize(fn, form, x);
  for (int64_t r = 0; r < x.rows(); ++r) {
    const std::byte* row = out.data() + r * act_row_bytes(form, x.dim());
    const auto* q = reinterpret_cast<const int8_t*>(row);
    const auto* scale = reinterpret_cast<const float*>(row + act_scale_offset(form, x.dim()));
    const auto* sum = reinterpret_cast<const int16_t*>(row + act_sum_offset(form, x.dim()));
    for (int64_t i = 0; i < x.dim(); ++i) {
      const double step = scale[i / block], amax = 127 * step;
      ASSERT_NEAR(step * q[i], x.row(r)[i], 0.5 * step + 4 * amax * 0x1p-24) << "row " << r << " index " << i;
    }
    for (int64_t s = 0; s < x.dim() / sum_block; ++s) {
      int total = 0;
      for (int64_t i = 0; i < sum_block; ++i) total += q[s * sum_block + i];
      ASSERT_EQ(sum[s], total);
    }
  }
}
OP_TEST(Quantize32, IsCloseToInput, kQuantizeQ8x32) { expect_close_to_input(fn(), ActForm::kQ8x32, 32, 32); }
OP_TEST(Quantize256, IsCloseToInput, kQuantizeQ8x256) { expect_close_to_input(fn(), ActForm::kQ8x256, 256, 16); }

OP_TEST(Quantize32, OutliersAreListedAndDoNotWidenTheirBlock, kQuantizeQ8x32) {
  Rows x(1, 64, 0, 1.0f);
  x.data()[5] = -100.0f;
  x.data()[9] = 40.0f;   // limit of the first block: (30 + 140) / 4 = 42.5
  x.data()[40] = 10.0f;  // of the second: (31 + 10) / 4 = 10.25
  const AlignedBytes out = quantize(fn(), ActForm::kQ8x32, x);
  const auto* q = reinterpret_cast<const int8_t*>(out.data());
  const auto* scale = reinterpret_cast<const float*>(out.data() + act_scale_offset(ActForm::kQ8x32, 64));
  const std::byte* head = out.data() + act_outlier_offset(ActForm::kQ8x32, 64);
  const auto* outlier = reinterpret_cast<const Outlier*>(head + kOutlierHeadBytes);
  EXPECT_EQ(*reinterpret_cast<const int32_t*>(head), 1);
  EXPECT_EQ(outlier[0].i, 5);
  EXPECT_EQ(outlier[0].x, -100.0f);
  EXPECT_EQ(q[5], 0);
  EXPECT_EQ(q[9], 127);
  EXPECT_EQ(scale[0], 40.0f / 127.0f);
  EXPECT_EQ(q[40], 127);
}

OP_TEST(Quantize256Twice, AnOutlierDoesNotHideALesserOne, kQuantizeQ8x256Twice) {
  Rows x(1, 256, 0, 1.0f);
  x.data()[5] = 1000.0f;  // the first limit is (254 + 1000 + 20) / 32 = 39.8, the second (254 + 20) / 32 = 8.6
  x.data()[200] = -20.0f;
  const AlignedBytes out = quantize(fn(), ActForm::kQ8x256Twice, x);
  const std::byte* head = out.data() + act_outlier_offset(ActForm::kQ8x256Twice, 256);
  const auto* outlier = reinterpret_cast<const Outlier*>(head + kOutlierHeadBytes);
  EXPECT_EQ(*reinterpret_cast<const int32_t*>(head), 2);
  EXPECT_EQ(outlier[0].i, 5);
  EXPECT_EQ(outlier[1].x, -20.0f);
  EXPECT_EQ(*reinterpret_cast<const float*>(out.data() + act_scale_offset(ActForm::kQ8x256Twice, 256)), 1.0f / 127.0f);
}

OP_TEST(Quantize32, BrokenValuesStayTheirOwn, kQuantizeQ8x32) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Rows x(1, 96, 0, 1.0f);
  x.data()[3] = std::numeric_limits<float>::quiet_NaN();
  x.data()[40] = -kInf;
  const AlignedBytes out = quantize(fn(), ActForm::kQ8x32, x);
  const auto* q = reinterpret_cast<const int8_t*>(out.data());
  const auto* scale = reinterpret_cast<const float*>(out.data() + act_scale_offset(ActForm::kQ8x32, 96));
  EXPECT_EQ(q[3], 0);
  EXPECT_EQ(q[4], 127);
  EXPECT_EQ(scale[0], 1.0f / 127.0f);
  EXPECT_EQ(scale[1], kInf);
  for (int i = 32; i < 64; ++i) EXPECT_EQ(q[i], 0);
  EXPECT_EQ(q[64], 127);
}

TEST(ActForm, SizesAndPlaces) {
  EXPECT_EQ(act_row_bytes(ActForm::kF32, 17), 68);
  EXPECT_EQ(act_scale_offset(ActForm::kQ8x32, 96), 128);
  EXPECT_EQ(act_sum_offset(ActForm::kQ8x32, 96), 192);
  EXPECT_EQ(act_outlier_offset(ActForm::kQ8x32, 96), 256);
  EXPECT_EQ(act_row_bytes(ActForm::kQ8x32, 96), 256 + 128);  // 8 bytes, then at most 12 outliers of 8
  EXPECT_EQ(act_outlier_offset(ActForm::kQ8x256, 512), 512 + 64 + 64);
  EXPECT_EQ(act_sum_offset(ActForm::kQ8x256, 4384), 4416 + 128);  // 18 scales
  EXPECT_EQ(act_form_name(ActForm::kQ8x256), "q8x256");
}

}  // namespace
}  // namespace headrace
