#include "ops/weight_layout.h"

#include "base/half.h"
#include "base/test_walk.h"
#include "ops/recipe.h"
#include "ops/weight_test.h"

namespace headrace {
namespace {

std::vector<float> decoded_row(DType dtype, std::span<const std::byte> rows, int64_t row, int64_t k) {
  std::vector<float> out(static_cast<size_t>(k));
  find_format(dtype)->decode(rows.data() + row * file_row_bytes(dtype, k), k, out.data());
  return out;
}

/// What a layout makes of a file's values: those themselves, or, of F16 that becomes bf16, the nearest bf16.
std::vector<float> packed_row(DType dtype, WeightLayout layout, std::span<const std::byte> rows, int64_t row,
                              int64_t k) {
  std::vector<float> values = decoded_row(dtype, rows, row, k);
  if (layout == WeightLayout::kBf16Pairs16) {
    for (float& v : values) v = bf16_to_f32(f32_to_bf16(v));
  }
  return values;
}

void expect_round_trip(DType dtype, WeightLayout layout, int64_t n, int64_t k, WeightBits bits) {
  const std::vector<std::byte> rows = random_file_rows(dtype, n, k, bits, test_seed());
  const PackedWeights packed(dtype, layout, n, k, rows);
  std::vector<float> got(static_cast<size_t>(k));
  for (int64_t row = 0; row < n; ++row) {
    unpack_weight_row(packed.view(), row, got.data());
    const CaseLabel label{"unpack_weight_row", std::string(weight_layout_name(layout)),
                          cat(dtype_name(dtype), " [", n, ",", k, "] row ", row), test_seed()};
    expect_bit_equal(label, std::span<const float>(got),
                     std::span<const float>(packed_row(dtype, layout, rows, row, k)));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(WeightLayout, UnpackingGivesTheDecodersValues) {
  TestWalk walk("sizes of packed weights", 7);
  for (const BlockFormat* format : all_formats()) {
    const int64_t step = dtype_info(format->dtype).block_elems;
    for (WeightLayout layout : kAllWeightLayouts) {
      if (layout_recipe(layout, format->dtype) == nullptr) continue;
      for (WeightBits bits : {WeightBits::kEncoded, WeightBits::kFinite, WeightBits::kAny}) {
        for (int64_t n : {1, 15, 16, 17, 50}) {
          for (int64_t blocks : {1, 2, 3, 8, 9, 13, 32, 33}) {
            if (walk.takes_next()) expect_round_trip(format->dtype, layout, n, blocks * step, bits);
          }
        }
      }
    }
  }
}

TEST(WeightLayout, InterleavedIsAtMostATenthLargerThanTheFile) {
  int formats = 0;
  for (const BlockFormat* format : all_formats()) {
    if (!has_interleaved_layout(format->dtype)) continue;
    ++formats;
    for (int64_t k : {256, 512, 2304}) {
      const int64_t file = 32 * file_row_bytes(format->dtype, k);
      EXPECT_LE(packed_bytes(format->dtype, WeightLayout::kInterleaved16, 32, k) * 100, file * 110)
          << dtype_name(format->dtype) << " k " << k;
    }
  }
  EXPECT_EQ(formats, 12);
}

TEST(WeightLayout, PairsOfBf16AreAsLargeAsTheFile) {
  EXPECT_EQ(packed_bytes(DType::kBF16, WeightLayout::kBf16Pairs16, 32, 576), 32 * 576 * 2);
  EXPECT_EQ(packed_bytes(DType::kF16, WeightLayout::kBf16Pairs16, 17, 33), 32 * 64 * 2);  // whole groups and blocks
}

TEST(WeightLayout, PaddingOfPairsOfBf16IsZero) {
  const std::vector<std::byte> rows = random_file_rows(DType::kBF16, 3, 33, WeightBits::kEncoded, test_seed());
  const PackedWeights packed(DType::kBF16, WeightLayout::kBf16Pairs16, 3, 33, rows);
  WeightView padded = packed.view();
  padded.k = 64;
  std::vector<float> values(64);
  for (int64_t row = 0; row < 16; ++row) {
    unpack_weight_row(padded, row, values.data());
    for (size_t i = row < 3 ? 33 : 0; i < 64; ++i) ASSERT_EQ(values[i], 0.0f) << "row " << row << " index " << i;
  }
}

TEST(WeightLayout, PackingInPartsEqualsPackingAtOnce) {
  for (DType dtype : {DType::kQ4_K, DType::kQ5_0, DType::kF32, DType::kBF16, DType::kF16}) {
    const int64_t n = 83, k = 768;
    const WeightLayout layout = matmul_recipe(Numerics::kFastest, dtype)->layout;
    const std::vector<std::byte> rows = random_file_rows(dtype, n, k, WeightBits::kFinite, test_seed());
    AlignedBytes whole(packed_bytes(dtype, layout, n, k)), parts(packed_bytes(dtype, layout, n, k));
    pack_weights(dtype, layout, rows, n, k, 0, n, whole.data());
    pack_weights(dtype, layout, rows, n, k, 48, n, parts.data());
    pack_weights(dtype, layout, rows, n, k, 0, 32, parts.data());
    pack_weights(dtype, layout, rows, n, k, 32, 48, parts.data());
    EXPECT_TRUE(std::ranges::equal(whole.span(), parts.span())) << dtype_name(dtype);
  }
}

TEST(WeightLayout, PaddingIsZero) {
  for (DType dtype : {DType::kQ8_0, DType::kQ6_K, DType::kIQ4_XS, DType::kQ4_1}) {
    const std::vector<std::byte> rows(static_cast<size_t>(file_row_bytes(dtype, 256)));  // one neuron of zero bits
    AlignedBytes packed(packed_bytes(dtype, WeightLayout::kInterleaved16, 1, 256));
    pack_weights(dtype, WeightLayout::kInterleaved16, rows, 1, 256, 0, 1, packed.data());
    const WeightView as_if_16{dtype, WeightLayout::kInterleaved16, 16, 256, packed.data()};
    float values[256];
    for (int64_t row = 1; row < 16; ++row) {
      unpack_weight_row(as_if_16, row, values);
      for (float v : values) ASSERT_EQ(v, 0.0f) << dtype_name(dtype) << " row " << row;
    }
  }
}

TEST(WeightLayout, Names) {
  EXPECT_EQ(weight_layout_name(WeightLayout::kRows), "rows");
  EXPECT_EQ(weight_layout_name(WeightLayout::kInterleaved16), "interleaved16");
  EXPECT_EQ(weight_layout_name(WeightLayout::kBf16Pairs16), "bf16pairs16");
  EXPECT_FALSE(has_interleaved_layout(DType::kF16));
  EXPECT_FALSE(has_bf16_pairs_layout(DType::kF32));
  EXPECT_FALSE(has_interleaved_layout(DType::kIQ2_S));
}

}  // namespace
}  // namespace headrace
