#include "ops/requant.h"

#include "ops/matmul.h"
#include "ops/recipe.h"
#include "ops/weight_test.h"

namespace headrace {
namespace {

/// The units of neuron `row` of a matrix in kRequant16: body(unit's first k, its values' count, r, w8).
template <class Body>
void for_units(const WeightView& w, int64_t row, Body body) {
  const InterleavedFormat& format = *find_interleaved(w.dtype);
  const std::byte* group = w.data + row / kNeuronGroup * requant_group_bytes(format, w.k);
  const std::byte* scales = group + interleaved_group_bytes(format, w.k) + row % kNeuronGroup * 4;
  for (int64_t u = 0; u < requant_units(w.k); ++u) {
    const int64_t count = std::min<int64_t>(kUnitK, w.k - u * kUnitK);
    const auto blocks = static_cast<int>(count / format.block_elems);
    NeuronUnit numbers;
    read_unit(format, group + u * format.unit_bytes, blocks, static_cast<int>(row % kNeuronGroup), numbers);
    float r;
    std::memcpy(&r, scales + u * kRequantScaleBytes, sizeof r);
    int8_t w8[kUnitK];
    requant_unit(format, numbers, blocks, r, w8);
    body(u * kUnitK, count, r, w8);
  }
}

std::vector<DType> types() {
  std::vector<DType> all;
  for (const InterleavedFormat& format : kInterleavedFormats) all.push_back(format.dtype);
  return all;
}
int64_t awkward_k(DType dtype) { return dtype_info(dtype).block_elems == 32 ? 608 : 768; }

/// What the rounding to w8 costs at most, in units of r. Half a step, then what S is off by half of its last place,
/// times the code; B likewise. 4 roundings of f32 on the way to S and B and 3 in the decoder, each 2^-24 of at most
/// 127 r, stay below 10^-4.
double largest_error(const InterleavedFormat& format) {
  double of_scale = 0;
  if (is_high_product(format)) {
    of_scale = 128.0 / (1 << 16);
  } else if (format.has_min) {
    of_scale = static_cast<double>(1 << format.code_bits) / 512;
  } else {
    of_scale = static_cast<double>(format.code_offset) / 512;
  }
  return 0.5 + of_scale + 1e-4;
}

TEST(Requant, IsCloseToTheDecodedWeights) {
  for (DType dtype : types()) {
    const InterleavedFormat& format = *find_interleaved(dtype);
    const int64_t n = 33, k = awkward_k(dtype);
    for (WeightBits bits : {WeightBits::kEncoded, WeightBits::kFinite, WeightBits::kExtreme}) {
      const std::vector<std::byte> rows = random_file_rows(dtype, n, k, bits, test_seed());
      const PackedWeights packed(dtype, WeightLayout::kRequant16, n, k, rows);
      std::vector<float> w(static_cast<size_t>(k));
      for (int64_t row = 0; row < n; ++row) {
        find_format(dtype)->decode(rows.data() + row * file_row_bytes(dtype, k), k, w.data());
        for_units(packed.view(), row, [&](int64_t first, int64_t count, float r, const int8_t* w8) {
          for (int64_t i = 0; i < count; ++i) {
            const double want = double{w[static_cast<size_t>(first + i)]};
            const double error = std::abs(double{r} * w8[i] - want);
            ASSERT_LE(error, largest_error(format) * double{r})
                << dtype_name(dtype) << " bits " << static_cast<int>(bits) << " row " << row << " index " << first + i
                << " r " << r << " w8 " << int{w8[i]} << " want " << want;
            ASSERT_LE(std::abs(int{w8[i]}), 127);
          }
        });
      }
    }
  }
}

TEST(Requant, UsesTheWholeRange) {
  for (DType dtype : types()) {
    const int64_t n = 16, k = 512;
    const std::vector<std::byte> rows = random_file_rows(dtype, n, k, WeightBits::kEncoded, test_seed());
    const PackedWeights packed(dtype, WeightLayout::kRequant16, n, k, rows);
    for (int64_t row = 0; row < n; ++row) {
      for_units(packed.view(), row, [&](int64_t, int64_t count, float, const int8_t* w8) {
        int most = 0;
        for (int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(int{w8[i]}));
        // The largest code of a step may not occur: with three levels of Q3_K's eight missing, 63 of 127.
        EXPECT_GE(most, 64) << dtype_name(dtype);
      });
    }
  }
}

TEST(Requant, UnitsThatAreNotNumbersStayTheirOwn) {
  for (DType dtype : types()) {
    const int64_t n = 64, k = 512;
    const std::vector<std::byte> rows = random_file_rows(dtype, n, k, WeightBits::kAny, test_seed());
    const PackedWeights packed(dtype, WeightLayout::kRequant16, n, k, rows);
    int broken = 0;
    std::vector<float> w(static_cast<size_t>(k));
    for (int64_t row = 0; row < n; ++row) {
      find_format(dtype)->decode(rows.data() + row * file_row_bytes(dtype, k), k, w.data());
      for_units(packed.view(), row, [&](int64_t first, int64_t count, float r, const int8_t* w8) {
        const bool finite =
            std::all_of(w.begin() + first, w.begin() + first + count, [](float v) { return std::isfinite(v); });
        if (!finite) {
          ASSERT_FALSE(std::isfinite(r)) << dtype_name(dtype);
        }
        if (std::isfinite(r)) return;
        ++broken;
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(w8[i], 0) << dtype_name(dtype);
      });
    }
    EXPECT_GT(broken, 0) << dtype_name(dtype);
  }
}

TEST(Requant, OfZerosIsZero) {
  for (DType dtype : types()) {
    const std::vector<std::byte> rows(static_cast<size_t>(file_row_bytes(dtype, 256)));
    const PackedWeights packed(dtype, WeightLayout::kRequant16, 1, 256, rows);
    for_units(packed.view(), 0, [&](int64_t, int64_t count, float r, const int8_t* w8) {
      EXPECT_EQ(r, 0.0f);
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(w8[i], 0) << dtype_name(dtype);
    });
  }
}

TEST(Requant, IsAtMostATenthLargerThanTheFile) {
  for (DType dtype : types()) {
    for (int64_t k : {256, 512, 2048, 2304}) {
      EXPECT_LE(packed_bytes(dtype, WeightLayout::kRequant16, 32, k) * 100, 32 * file_row_bytes(dtype, k) * 110)
          << dtype_name(dtype) << " k " << k;
    }
    if (dtype_info(dtype).block_elems > 32) continue;
    EXPECT_LE(packed_bytes(dtype, WeightLayout::kRequant16, 32, 576) * 100, 32 * file_row_bytes(dtype, 576) * 110);
  }
}

// Each unit rounds r * a and its addition, each outlier the three operations of its weight and its addition: bounds of
// first order in u = 2^-24, and one more u for the terms of higher order.
TEST(Requant, ProductsAreTheSumsOfTheRoundedWeights) {
  for (DType dtype : types()) {
    const int64_t n = 17, k = awkward_k(dtype), rows = 2;
    const std::vector<std::byte> file = random_file_rows(dtype, n, k, WeightBits::kFinite, test_seed());
    const PackedWeights weights(dtype, WeightLayout::kRequant16, n, k, file);
    Rows x = random_rows({.rows = rows, .dim = k, .seed = test_seed()});
    for (int64_t i = 5; i < k; i += 90) x.row(1)[i] = 100;
    AlignedBytes record(act_row_bytes(ActForm::kQ8x256Twice, k) * rows);
    const ActView act{ActForm::kQ8x256Twice, record.data(), rows, k};
    kQuantizeQ8x256Twice.reference().fn({.x = x.data(), .y = act}, {0, rows});
    Rows got(rows, n);
    matmul_table(dtype, WeightLayout::kRequant16)
        ->reference()
        .fn({.x = act, .w = weights.view(), .y = got.data(), .y_stride = n}, {0, 2});
    std::vector<float> w(static_cast<size_t>(k));
    for (int64_t r = 0; r < rows; ++r) {
      const std::byte* at = record.data() + r * act_row_bytes(act.form, k);
      const auto* q = reinterpret_cast<const int8_t*>(at);
      const auto* a = reinterpret_cast<const float*>(at + act_scale_offset(act.form, k));
      const std::byte* head = at + act_outlier_offset(act.form, k);
      const auto* outlier = reinterpret_cast<const Outlier*>(head + kOutlierHeadBytes);
      const int32_t outliers = *reinterpret_cast<const int32_t*>(head);
      if (r == 1) {
        ASSERT_GT(outliers, 0);
      }
      for (int64_t j = 0; j < n; ++j) {
        double want = 0, magnitude = 0;
        const auto add = [&](double term) { want += term, magnitude += std::abs(term); };
        for_units(weights.view(), j, [&](int64_t first, int64_t count, float scale, const int8_t* w8) {
          int32_t sum = 0;
          for (int64_t i = 0; i < count; ++i) sum += w8[i] * q[first + i];
          add(double{scale} * double{a[first / kUnitK]} * sum);
        });
        unpack_weight_row(weights.view(), j, w.data());
        for (int32_t o = 0; o < outliers; ++o) add(double{w[static_cast<size_t>(outlier[o].i)]} * double{outlier[o].x});
        const auto roundings = static_cast<double>(2 * requant_units(k) + 4 * outliers + 1);
        ASSERT_LE(std::abs(double{got.row(r)[j]} - want), roundings * 0x1p-24 * magnitude)
            << dtype_name(dtype) << " row " << r << " neuron " << j;
      }
    }
  }
}

TEST(Requant, IsTheRecipeOfItsLayout) {
  EXPECT_EQ(recipe_text(*layout_recipe(WeightLayout::kRequant16, DType::kQ4_K)), "r8x256 v1");
  EXPECT_EQ(recipe_text(*layout_recipe(WeightLayout::kRequant16, DType::kQ8_0)), "r8x256 v1");
  EXPECT_EQ(layout_recipe(WeightLayout::kRequant16, DType::kBF16), nullptr);
  EXPECT_EQ(recipe_text(*matmul_recipe(Numerics::kFastest, DType::kQ4_K)), "r8x256 v1");
  EXPECT_EQ(recipe_text(*matmul_recipe(Numerics::kFastest, DType::kQ8_0)), "q8x32 v1");
  EXPECT_EQ(recipe_text(*output_recipe(Numerics::kFastest, DType::kQ4_K)), "q8x256 v1");
  EXPECT_EQ(recipe_text(*output_recipe(Numerics::kExact, DType::kQ4_K)), "f32-lanes16 v1");
  EXPECT_EQ(weight_layout_name(WeightLayout::kRequant16), "requant16");
}

}  // namespace
}  // namespace headrace
