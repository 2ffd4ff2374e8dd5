#include "ops/matmul.h"

#include <set>

#include "base/half.h"
#include "base/test_walk.h"
#include "ops/recipe.h"
#include "ops/weight_test.h"

namespace headrace {
namespace {

/// The products of one type in one layout.
struct Product {
  DType dtype;
  WeightLayout layout;
  const OpTable<MatmulFn>* table;
  friend void PrintTo(const Product& p, std::ostream* out) { *out << p.table->name(); }
};

std::vector<Product> products() {
  std::vector<Product> all;
  for (const BlockFormat* format : all_formats()) {
    for (WeightLayout layout : kAllWeightLayouts) {
      const OpTable<MatmulFn>* table = matmul_table(format->dtype, layout);
      if (table != nullptr) all.push_back({format->dtype, layout, table});
    }
  }
  return all;
}

std::string product_name(const testing::TestParamInfo<Product>& info) {
  return cat(dtype_name(info.param.dtype), "_", weight_layout_name(info.param.layout));
}

ActForm act_form(DType dtype, WeightLayout layout) { return layout_recipe(layout, dtype)->act; }

/// Activations in a product's form.
class Activations {
 public:
  Activations(ActForm form, const Rows& x) : bytes_(act_row_bytes(form, x.dim()) * x.rows() + 4) {
    // f32 rows begin off the alignment; the quantised forms promise it.
    view_ = {form, bytes_.data() + (form == ActForm::kF32 ? 4 : 0), x.rows(), x.dim()};
    if (form == ActForm::kF32) {
      std::memcpy(view_.data, x.data(), x.span().size_bytes());
    } else {
      const OpTable<QuantizeFn>& table = *quantize_table(form);
      table.reference().fn({.x = x.data(), .y = view_}, {0, x.rows()});
    }
  }
  [[nodiscard]] const ActView& view() const { return view_; }

 private:
  AlignedBytes bytes_;
  ActView view_;
};

struct Case {
  int64_t n, k, rows;
  WeightBits bits = WeightBits::kEncoded;
  int64_t special = 0;
  bool bias = false;
  int64_t outlier_period = 0;  ///< every such value is far larger than the others; 0: none
  bool extreme_x = false;      ///< x is 1 or -1 throughout: int8 activations at their bounds
};

class Matmul : public testing::TestWithParam<Product> {
 protected:
  static void SetUpTestSuite() {
    for (const Isa isa : kAllIsas) {
      if (!machine_has(isa))
        std::printf("matmul: %s not run, this machine lacks it\n", std::string(isa_name(isa)).c_str());
    }
  }
  /// Least k that the type allows.
  [[nodiscard]] int64_t step() const { return dtype_info(GetParam().dtype).block_elems; }

  void expect_equal_to_reference(const Case& c) {
    if (HasFailure() || !walk_.takes_next()) return;  // one report is enough
    const Product& p = GetParam();
    const std::vector<std::byte> file = random_file_rows(p.dtype, c.n, c.k, c.bits, test_seed());
    const PackedWeights weights(p.dtype, p.layout, c.n, c.k, file);
    Rows x = random_rows({.rows = c.rows, .dim = c.k, .special = c.special, .seed = test_seed() + 1});
    for (int64_t r = 0; c.extreme_x && r < c.rows; ++r) {
      const int64_t period = r < 2 ? c.k : r;  // rows of one sign, then signs that change every r
      for (int64_t i = 0; i < c.k; ++i) x.row(r)[i] = (i / period + r) % 2 == 0 ? 1.0f : -1.0f;
    }
    for (int64_t i = 0; c.outlier_period > 0 && i < c.rows * c.k; i += c.outlier_period) {
      x.data()[i] = x.data()[i] * 50 + 40;
    }
    const Activations act(act_form(p.dtype, p.layout), x);
    const Rows bias = random_rows({.rows = 1, .dim = c.n, .seed = test_seed() + 2});
    const int64_t stride = c.n + 3, groups = (c.n + kNeuronGroup - 1) / kNeuronGroup;
    Rows want(c.rows, stride, 0, 123.0f);
    MatmulArgs args{.x = act.view(),
                    .w = weights.view(),
                    .bias = c.bias ? bias.data() : nullptr,
                    .y = want.data(),
                    .y_stride = stride};
    p.table->reference().fn(args, {0, groups});
    const int64_t first = TestRandom(test_seed() + static_cast<uint64_t>(c.n)).below(groups + 1);
    for (const OpVariant<MatmulFn>& variant : *p.table) {
      if (variant.isa == Isa::kRef || !machine_has(variant.isa)) continue;
      Rows got(c.rows, stride, 1, 123.0f);
      args.y = got.data();
      variant.fn(args, {first, groups});  // in two parts, the later one first
      variant.fn(args, {0, first});
      expect_bit_equal({std::string(p.table->name()), std::string(isa_name(variant.isa)),
                        cat(dtype_name(p.dtype), " n ", c.n, " k ", c.k, " rows ", c.rows, " bits ",
                            static_cast<int>(c.bits), " special ", c.special, " bias ", c.bias),
                        test_seed()},
                       got.span(), want.span());
    }
  }

 private:
  // Each product begins elsewhere, so that together they take every case.
  TestWalk walk_{"shapes of each product", 7, static_cast<int>(GetParam().dtype) + static_cast<int>(GetParam().layout)};
};
INSTANTIATE_TEST_SUITE_P(, Matmul, testing::ValuesIn(products()), product_name);

TEST_P(Matmul, EqualsReferenceForEveryLength) {
  std::set<int64_t> lengths{step(), 2 * step(), 3 * step(), 7 * step(), 2304};
  if (step() == 1) lengths.insert({15, 16, 17, 31, 33, 255, 511, 512, 513, 576, 1039, 2053});
  if (step() == 32) lengths.insert({256, 288, 512, 544, 800});
  for (int64_t k : lengths) {
    for (int64_t rows : {1, 2, 3, 5, 17}) expect_equal_to_reference({.n = 17, .k = k, .rows = rows});
  }
}

TEST_P(Matmul, EqualsReferenceForEveryShape) {
  const int64_t k = step() > 32 ? 512 : 352;
  for (int64_t rows = 1; rows <= 9; ++rows) {
    expect_equal_to_reference({.n = 17, .k = k, .rows = rows, .bias = rows % 2 == 1});
  }
  for (int64_t n : {1, 2, 15, 16, 31, 33}) {
    for (int64_t rows : {1, 3, 8}) expect_equal_to_reference({.n = n, .k = k, .rows = rows, .bias = rows == 3});
  }
  for (int64_t rows : {12, 13, 16, 31, 33, 64, 130}) {
    expect_equal_to_reference({.n = 19, .k = k, .rows = rows, .bias = true});
  }
  expect_equal_to_reference({.n = 544, .k = k, .rows = 7});
}

TEST_P(Matmul, EqualsReferenceForBrokenValues) {
  for (WeightBits bits : {WeightBits::kEncoded, WeightBits::kFinite, WeightBits::kAny}) {
    for (int64_t special : {0, 3, 1000}) {
      for (int64_t rows : {1, 15}) {
        expect_equal_to_reference({.n = 19, .k = 512, .rows = rows, .bits = bits, .special = special});
      }
    }
  }
}

// Sums in 16 bits must not saturate, those in 32 not wrap: the bounds that the kernels state are reached here.
TEST_P(Matmul, EqualsReferenceAtTheBoundsOfCodes) {
  for (int64_t rows : {2, 9, 18}) {
    expect_equal_to_reference({.n = 49, .k = 1024, .rows = rows, .bits = WeightBits::kExtreme, .extreme_x = true});
  }
}

TEST_P(Matmul, EqualsReferenceWithOutliers) {
  for (int64_t period : {11, 61, 700}) {
    for (int64_t rows : {1, 2, 9, 14}) {
      expect_equal_to_reference({.n = 35, .k = 1280, .rows = rows, .bias = true, .outlier_period = period});
      expect_equal_to_reference({.n = 16, .k = step() > 32 ? 768 : 608, .rows = rows, .outlier_period = period});
    }
    expect_equal_to_reference({.n = 17, .k = 512, .rows = 5, .bits = WeightBits::kFinite, .outlier_period = period});
  }
}

TEST_P(Matmul, EqualsReferenceWhereRowsTakeSeveralPasses) {
  expect_equal_to_reference({.n = 5, .k = 8192, .rows = 131});
  expect_equal_to_reference({.n = 83, .k = step() > 32 ? 256 : 96, .rows = 290, .bias = true});
}

/// Products that take the weights as the file has them; of those that round them see requant_test.cc.
class MatmulOfFileWeights : public Matmul {};
std::vector<Product> products_of_file_weights() {
  std::vector<Product> all = products();
  std::erase_if(all, [](const Product& p) { return p.layout == WeightLayout::kRequant16; });
  return all;
}
INSTANTIATE_TEST_SUITE_P(, MatmulOfFileWeights, testing::ValuesIn(products_of_file_weights()), product_name);

/// The sum in double and, for the bound, the sum of its terms' magnitudes.
struct Sum {
  double value = 0, magnitude = 0;
  void add(double term) { value += term, magnitude += std::abs(term); }
};

/// Terms as the quantised recipes have them, from the file's own blocks: one or two a block, one an outlier.
Sum sum_of_blocks(DType dtype, const std::byte* file, const ActView& x, int64_t row) {
  const BlockFormat& format = *find_format(dtype);
  const std::byte* record = x.data + row * act_row_bytes(x.form, x.k);
  const auto* q = reinterpret_cast<const int8_t*>(record);
  const auto* scale = reinterpret_cast<const float*>(record + act_scale_offset(x.form, x.k));
  const int64_t block = dtype_info(dtype).block_elems;
  const std::byte* first = file;
  Sum sum;
  for (int64_t b = 0; b < x.k / block; ++b, q += block, file += dtype_info(dtype).block_bytes) {
    double products = 0, minima = 0;
    UnpackedBlock32 u;
    UnpackedBlock256 v;
    if (block == 32) {
      format.unpack32(file, u);
    } else {
      format.unpack256(file, v);
    }
    for (int64_t i = 0; i < block; ++i) {
      if (block == 32) {
        products += double{u.d} * u.q[i] * q[i];
        minima += double{u.m} * q[i];
      } else {
        products += double{v.d} * v.scale[i / format.scale_elems] * v.q[i] * q[i];
        minima -= double{v.dmin} * v.min[i / format.scale_elems] * q[i];
      }
    }
    sum.add(products * double{scale[b]});
    sum.add(minima * double{scale[b]});
  }
  const std::byte* head = record + act_outlier_offset(x.form, x.k);
  std::vector<float> w(static_cast<size_t>(x.k));
  format.decode(first, x.k, w.data());
  for (int32_t o = 0; o < *reinterpret_cast<const int32_t*>(head); ++o) {
    const Outlier outlier = reinterpret_cast<const Outlier*>(head + kOutlierHeadBytes)[o];
    sum.add(double{w[static_cast<size_t>(outlier.i)]} * double{outlier.x});
  }
  return sum;
}

/// Weights as the layout holds them, activations as their record does.
Sum sum_of_products(const WeightView& weights, int64_t neuron, const ActView& x, int64_t row) {
  std::vector<float> w(static_cast<size_t>(x.k));
  unpack_weight_row(weights, neuron, w.data());
  const std::byte* record = x.data + row * act_row_bytes(x.form, x.k);
  Sum sum;
  for (int64_t i = 0; i < x.k; ++i) {
    const float value = x.form == ActForm::kF32 ? reinterpret_cast<const float*>(record)[i]
                                                : bf16_to_f32(reinterpret_cast<const uint16_t*>(record)[i]);
    sum.add(double{w[static_cast<size_t>(i)]} * double{value});
  }
  return sum;
}

// Quantised: each term takes three roundings at most before its fused addition (d * a or a * sum, the integer to f32),
// an outlier's weight as many, and each of 2 * blocks + kOutliers additions rounds a partial sum no larger than the
// magnitudes together. Floats: each chain has ceil(k / 16) roundings, the tree four. bf16: a term is in the roundings
// of half a block, of joining the chains and of k / 32 blocks; flushing moves each of at most 2 k operations by less
// than the least normal number. First-order bounds in u = 2^-24; one more u for the terms of higher order (their count
// times u is below 2^-14).
TEST_P(MatmulOfFileWeights, IsCloseToDouble) {
  const Product& p = GetParam();
  constexpr int kOutliers = 11;
  const int64_t n = 21, k = 1024, rows = 3;
  for (WeightBits bits : {WeightBits::kEncoded, WeightBits::kFinite}) {
    const std::vector<std::byte> file = random_file_rows(p.dtype, n, k, bits, test_seed());
    const PackedWeights weights(p.dtype, p.layout, n, k, file);
    // Small, so that random f32 weights near the largest number do not overflow.
    Rows x = random_rows({.rows = rows, .dim = k, .low = -1e-4f, .high = 1e-4f, .seed = test_seed()});
    for (int64_t i = 7; i < k; i += 100) x.row(1)[i] = 0.01f;  // kOutliers of them
    const Activations act(act_form(p.dtype, p.layout), x);
    Rows got(rows, n);
    p.table->reference().fn({.x = act.view(), .w = weights.view(), .y = got.data(), .y_stride = n}, {0, 2});
    const bool quantised = p.layout == WeightLayout::kInterleaved16;
    const bool is_bf16 = p.layout == WeightLayout::kBf16Pairs16;
    const auto roundings = static_cast<double>(quantised ? 2 * k / step() + 3 + kOutliers
                                               : is_bf16 ? 16 + 1 + k / 32
                                                         : k / 16 + 4);
    const double flushed = is_bf16 ? 2.0 * static_cast<double>(k) * 0x1p-126 : 0.0;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < n; ++j) {
        const std::byte* row = file.data() + j * file_row_bytes(p.dtype, k);
        const Sum want =
            quantised ? sum_of_blocks(p.dtype, row, act.view(), r) : sum_of_products(weights.view(), j, act.view(), r);
        // Subnormal results round to the least subnormal instead.
        const double bound = (roundings + 1) * 0x1p-24 * want.magnitude + roundings * 0x1p-149 + flushed;
        ASSERT_LE(std::abs(double{got.row(r)[j]} - want.value), bound)
            << p.table->name() << " " << dtype_name(p.dtype) << " row " << r << " neuron " << j << " seed "
            << test_seed();
      }
    }
  }
}

}  // namespace
}  // namespace headrace
