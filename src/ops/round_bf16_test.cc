#include "ops/round_bf16.h"

#include "base/half.h"
#include "ops/op_test.h"

namespace headrace {
namespace {

AlignedBytes rounded(QuantizeFn fn, const Rows& x) {
  AlignedBytes out(act_row_bytes(ActForm::kBf16, x.dim()) * x.rows());
  const ActView view{.form = ActForm::kBf16, .data = out.data(), .rows = x.rows(), .k = x.dim()};
  fn({.x = x.data(), .y = view}, {1, x.rows()});  // in two parts, the later one first
  fn({.x = x.data(), .y = view}, {0, 1});
  return out;
}

OP_TEST(RoundBf16, MatchesReference, kRoundBf16) {
  for (int64_t dim : sizes_around(32)) {
    for (int64_t special : {0, 2, 40}) {
      const Rows x = random_rows({.rows = 3, .dim = dim, .shift = special % 3, .special = special, .seed = seed()});
      expect_bit_equal(label(cat("dim ", dim, " special ", special)), rounded(fn(), x).span(),
                       rounded(reference(), x).span());
    }
  }
  Rows any(4, 4096);  // every kind of bits
  TestRandom random(seed());
  for (int64_t i = 0; i < 4 * 4096; ++i) any.data()[i] = std::bit_cast<float>(static_cast<uint32_t>(random.bits()));
  expect_bit_equal(label("any bits"), rounded(fn(), any).span(), rounded(reference(), any).span());
}

OP_TEST(RoundBf16, RoundsToNearestEvenAndPadsWithZeros, kRoundBf16) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<float, uint32_t>> cases{{1.0f, 0x3f80},
                                                      {0x1.01p0f, 0x3f80},
                                                      {0x1.03p0f, 0x3f82},
                                                      {0x1.010002p0f, 0x3f81},
                                                      {-0.0f, 0x8000},
                                                      {0x1p-126f, 0x0080},
                                                      {0x1.fffp-127f, 0x0000},
                                                      {-0x1p-130f, 0x8000},
                                                      {0x1.fep127f, 0x7f7f},
                                                      {0x1.fffffep127f, 0x7f80},
                                                      {-kInf, 0xff80},
                                                      {0x1.feffp127f, 0x7f7f},
                                                      {std::bit_cast<float>(0x7f800001u), 0x7fc0},
                                                      {std::bit_cast<float>(0xffa50000u), 0xffe5}};
  Rows x(2, std::ssize(cases));
  for (size_t i = 0; i < cases.size(); ++i) x.row(1)[i] = cases[i].first;
  const AlignedBytes out = rounded(fn(), x);
  const auto* got = reinterpret_cast<const uint16_t*>(out.data() + act_row_bytes(ActForm::kBf16, x.dim()));
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(got[i], cases[i].second) << "index " << i;
  for (size_t i = cases.size(); i < 32; ++i) EXPECT_EQ(got[i], 0) << "index " << i;
}

TEST(RoundBf16, RecordsAreAnOddNumberOfLines) {
  EXPECT_EQ(act_row_bytes(ActForm::kBf16, 1), 64);
  EXPECT_EQ(act_row_bytes(ActForm::kBf16, 32), 64);
  EXPECT_EQ(act_row_bytes(ActForm::kBf16, 33), 3 * 64);
  EXPECT_EQ(act_row_bytes(ActForm::kBf16, 96), 3 * 64);
  EXPECT_EQ(act_row_bytes(ActForm::kBf16, 2048), 4096 + 64);
  EXPECT_EQ(act_form_name(ActForm::kBf16), "bf16");
}

}  // namespace
}  // namespace headrace
