// Recipe bf16x32 where it is peculiar: order of the sums, subnormals, the one NaN. Shapes: matmul_test.cc.
#include <cfenv>

#include "base/half.h"
#include "ops/matmul.h"
#include "ops/weight_test.h"

namespace headrace {
namespace {

using Bits = std::vector<uint16_t>;

/// Rows of activations times rows of weights, given as bits of bf16; the outputs row by row.
std::vector<float> product(MatmulFn fn, const Bits& x, const Bits& w, int64_t k, const float* bias = nullptr) {
  const int64_t rows = std::ssize(x) / k, n = std::ssize(w) / k;
  const PackedWeights weights(DType::kBF16, WeightLayout::kBf16Pairs16, n, k, std::as_bytes(std::span(w)));
  const int64_t record = act_row_bytes(ActForm::kBf16, k);
  AlignedBytes act(record * rows);
  std::memset(act.data(), 0, static_cast<size_t>(record * rows));
  for (int64_t r = 0; r < rows; ++r) std::memcpy(act.data() + r * record, x.data() + r * k, static_cast<size_t>(k) * 2);
  std::vector<float> y(static_cast<size_t>(rows * n));
  fn({.x = {.form = ActForm::kBf16, .data = act.data(), .rows = rows, .k = k},
      .w = weights.view(),
      .bias = bias,
      .y = y.data(),
      .y_stride = n},
     {0, (n + kNeuronGroup - 1) / kNeuronGroup});
  return y;
}

/// One neuron, with one row and with as many equal rows as tiles take: all must agree.
float dot(MatmulFn fn, const Bits& x, const Bits& w, const float* bias = nullptr) {
  const int64_t k = std::ssize(x);
  const float one = product(fn, x, w, k, bias)[0];
  Bits many;
  for (int r = 0; r < 40; ++r) many.insert(many.end(), x.begin(), x.end());
  for (const float y : product(fn, many, w, k, bias))
    EXPECT_EQ(std::bit_cast<uint32_t>(y), std::bit_cast<uint32_t>(one));
  return one;
}

uint16_t b(float v) { return f32_to_bf16(v); }
const OpTable<MatmulFn>& kTable = *matmul_table(DType::kBF16, WeightLayout::kBf16Pairs16);

OP_TEST(MatmulBf16, AddsEvenThenOddThenBlocks, kTable) {
  // Even chain: 2^24 + 1 - 2^24 = 0, the 1 rounded away; odd: 1.
  Bits x{b(0x1p24f), b(1), b(1), b(0), b(-0x1p24f)};
  EXPECT_EQ(dot(fn(), x, Bits(x.size(), b(1))), 1.0f);
  // In a block of its own the 1 survives: (2^24 - 2^24) + 1; a product of two rounded only with its sum.
  x.assign(64, b(0));
  x[0] = b(0x1p24f), x[2] = b(-0x1p24f), x[34] = b(1);
  EXPECT_EQ(dot(fn(), x, Bits(x.size(), b(1))), 1.0f);
  // Blocks in order: 2^24, + 1 rounded away, - 2^24.
  x.assign(96, b(0));
  x[0] = b(0x1p24f), x[33] = b(1), x[64] = b(-0x1p24f);
  EXPECT_EQ(dot(fn(), x, Bits(x.size(), b(1))), 0.0f);
}

OP_TEST(MatmulBf16, FlushesSubnormals, kTable) {
  const uint16_t least = 0x0080, subnormal = 0x0040;
  EXPECT_EQ(dot(fn(), {b(0x1p20f)}, {subnormal}), 0.0f);
  EXPECT_EQ(dot(fn(), {subnormal}, {b(0x1p20f)}), 0.0f);
  EXPECT_EQ(dot(fn(), {least}, {b(1)}), 0x1p-126f);
  EXPECT_EQ(dot(fn(), {least}, {b(0.5f)}), 0.0f);
  EXPECT_EQ(dot(fn(), {b(0x1.02p-126f), least}, {b(1), b(-1)}), 0.0f);  // the sum of the chains
  const float bias = 0x1p-130f;
  EXPECT_EQ(dot(fn(), {b(0)}, {b(1)}, &bias), 0.0f);
  // Just below the least normal number: kept where 24 bits round up to it, else flushed, though f32 would round it up.
  const Bits one{b(0x1p-63f), 0, b(0x1p-75f)};
  EXPECT_EQ(dot(fn(), one, {b(0x1p-63f), 0, b(-0x1.8p-77f)}), 0x1p-126f);
  EXPECT_EQ(dot(fn(), one, {b(0x1p-63f), 0, b(-0x1.8p-76f)}), 0.0f);
}

OP_TEST(MatmulBf16, GivesOneNan, kTable) {
  const uint16_t inf = 0x7f80;
  for (const Bits& x : {Bits{0x7fc1, 0xffff}, Bits{inf, b(0)}, Bits{inf, static_cast<uint16_t>(inf | 0x8000)}}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(dot(fn(), x, {b(1), b(1)})), x[1] == b(0) ? 0x7f800000u : 0x7fc00000u);
    EXPECT_EQ(std::bit_cast<uint32_t>(dot(fn(), x, {b(0), 0xffa0})), 0x7fc00000u);
  }
  const float bias = std::bit_cast<float>(0xffc12345u);
  EXPECT_EQ(std::bit_cast<uint32_t>(dot(fn(), {b(1)}, {b(1)}, &bias)), 0x7fc00000u);
}

OP_TEST(MatmulBf16, LeavesTheArithmeticOfOthersAlone, kTable) {
  volatile float tiny = 0x1p-126f;
  std::feclearexcept(FE_ALL_EXCEPT);
  dot(fn(), {0x0080}, {b(0.5f)});
  EXPECT_EQ(tiny * 0.5f, 0x1p-127f);
}

// Products and sums near the least normal number, and any bits at all.
OP_TEST(MatmulBf16, EqualsReferenceAtTheEndsOfTheRange, kTable) {
  TestRandom random(seed());
  for (const uint16_t exponents : {uint16_t{2}, uint16_t{8}, uint16_t{0}}) {  // 0: any bits
    for (const int64_t rows : {1, 20}) {
      const int64_t k = 70, n = 40;
      const auto number = [&](int64_t first) {
        const auto bits = static_cast<uint16_t>(random.bits());
        if (exponents == 0) return bits;
        return static_cast<uint16_t>((bits & 0x807f) | ((first + random.below(exponents)) << 7));
      };
      Bits x(static_cast<size_t>(rows * k)), w(static_cast<size_t>(n * k));
      for (uint16_t& v : x) v = number(62);
      for (uint16_t& v : w) v = number(exponents == 2 ? 63 : 60);
      const std::vector<float> got = product(fn(), x, w, k), want = product(reference(), x, w, k);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
            << case_text(label(cat("rows ", rows, " exponents ", exponents, " index ", i)));
      }
    }
  }
}

}  // namespace
}  // namespace headrace
