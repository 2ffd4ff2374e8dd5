#include "base/half.h"
#include "ops/attention.h"
#include "ops/op_test.h"

namespace headrace {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kI8};

OP_TEST(KvWrite, MatchesReference, kKvWrite) {
  for (DType dtype : kDTypes) {
    for (int32_t head_dim : {1, 3, 5, 7, 8, 9, 20, 24, 64, 80, 128}) {
      for (int32_t v_head_dim : {head_dim, head_dim + 13}) {
        for (int64_t special : {0, 13}) {
          const KvLayout layout{dtype, 3, head_dim, v_head_dim};
          const std::vector<int32_t> slots{5 * 16 + 3, 0, 2 * 16 + 15, 5 * 16 + 4};
          const int64_t rows = 4;
          const Rows k = random_rows({rows, 3 * head_dim, 1, -4, 4, special, seed()});
          const Rows v = random_rows({rows, 3 * v_head_dim, 3, -4, 4, special, seed() + 1});
          const AlignedBytes got(6 * kv_block_bytes(layout)), want(6 * kv_block_bytes(layout));
          reference()({layout, k.data(), v.data(), slots.data(), want.data(), rows}, {0, rows});
          fn()({layout, k.data(), v.data(), slots.data(), got.data(), rows}, {3, rows});
          fn()({layout, k.data(), v.data(), slots.data(), got.data(), rows}, {0, 3});
          expect_bit_equal(label(cat(dtype_name(dtype), " head_dim ", head_dim, " v_head_dim ", v_head_dim)),
                           got.span(), want.span());
        }
      }
    }
  }
}

/// One row, in block 2, place 9 of 2 heads of 20 and 12 components: where each component lies is written out here.
class OneRow {
 public:
  explicit OneRow(DType dtype, KvWriteFn fn, uint64_t seed)
      : dtype_(dtype),
        layout_{dtype, 2, 20, 12},
        slab_(3 * kv_block_bytes(layout_)),
        k_(random_rows({.rows = 1, .dim = 2 * 20, .seed = seed})),
        v_(random_rows({.rows = 1, .dim = 2 * 12, .seed = seed + 1})) {
    const int32_t slot = 2 * 16 + 9;
    fn({layout_, k_.data(), v_.data(), &slot, slab_.data(), 1}, {0, 1});
  }
  [[nodiscard]] float key(int g, int i) const {
    const float* x = k_.data() + g * 20;
    switch (dtype_) {
      case DType::kF32:
        return at<float>((g * 16 * (20 + 12) + i * 16 + 9) * 4);
      case DType::kF16:
        return f16_to_f32(at<uint16_t>((g * 16 * (20 + 12) + i * 16 + 9) * 2));
      case DType::kBF16:
        return bf16_to_f32(at<uint16_t>((g * 16 * (20 + 16) + (i / 2 * 16 + 9) * 2 + i % 2) * 2));
      default:
        return code(g * (16 * (20 + 12) + 128) + i * 16 + 9, g * (16 * (20 + 12) + 128) + 16 * 20 + 9 * 4, x, 20);
    }
  }
  [[nodiscard]] float value(int g, int i) const {
    const float* x = v_.data() + g * 12;
    switch (dtype_) {
      case DType::kF32:
        return at<float>((g * 16 * (20 + 12) + 16 * 20 + 9 * 12 + i) * 4);
      case DType::kF16:
        return f16_to_f32(at<uint16_t>((g * 16 * (20 + 12) + 16 * 20 + 9 * 12 + i) * 2));
      case DType::kBF16:
        return bf16_to_f32(at<uint16_t>((g * 16 * (20 + 16) + 16 * 20 + (4 * 16 + i) * 2 + 1) * 2));
      default:
        return code(g * (16 * (20 + 12) + 128) + 16 * 20 + 64 + 9 * 12 + i,
                    g * (16 * (20 + 12) + 128) + 16 * (20 + 12) + 64 + 9 * 4, x, 12);
    }
  }
  [[nodiscard]] static float rounded(DType dtype, float x) {
    return dtype == DType::kF16 ? f16_to_f32(f32_to_f16(x)) : dtype == DType::kBF16 ? bf16_to_f32(f32_to_bf16(x)) : x;
  }
  [[nodiscard]] const Rows& k() const { return k_; }
  [[nodiscard]] const Rows& v() const { return v_; }
  [[nodiscard]] int64_t bytes_written() const {
    int64_t written = 0;
    for (std::byte b : slab_.span()) written += b != std::byte{0xcd} ? 1 : 0;
    return written;
  }

 private:
  template <class T>
  [[nodiscard]] T at(int64_t offset) const {
    T element;
    std::memcpy(&element, slab_.data() + 2 * kv_block_bytes(layout_) + offset, sizeof(element));
    return element;
  }
  /// code * scale; the scale must be that of the n components at x.
  [[nodiscard]] float code(int64_t offset, int64_t scale_offset, const float* x, int n) const {
    float most = 0;
    for (int i = 0; i < n; ++i) most = std::max(most, std::fabs(x[i]));
    EXPECT_EQ(at<float>(scale_offset), most / 127);
    return static_cast<float>(at<int8_t>(offset)) * at<float>(scale_offset);
  }

  DType dtype_;
  KvLayout layout_;
  AlignedBytes slab_;
  Rows k_, v_;
};

OP_TEST(KvWrite, PutsEveryElementInItsPlace, kKvWrite) {
  for (DType dtype : kDTypes) {
    const OneRow row(dtype, fn(), seed());
    for (int g = 0; g < 2; ++g) {
      for (int i = 0; i < 20 + 12; ++i) {
        const float x = i < 20 ? row.k().data()[g * 20 + i] : row.v().data()[g * 12 + i - 20];
        const float got = i < 20 ? row.key(g, i) : row.value(g, i - 20);
        // Codes: half a step, of at most 1 / 127, and a few roundings.
        const float bound = dtype == DType::kI8 ? 0.5f / 127 + 1e-6f : 0;
        EXPECT_LE(std::fabs(got - OneRow::rounded(dtype, x)), bound) << dtype_name(dtype) << " " << g << " " << i;
      }
    }
    const int64_t element = dtype == DType::kF32 ? 4 : dtype == DType::kI8 ? 1 : 2;
    EXPECT_LE(row.bytes_written(), 2 * ((20 + 12) * element + (dtype == DType::kI8 ? 8 : 0)));
  }
}

/// Values for which a scale is a matter of its own.
OP_TEST(KvWrite, ScalesOfTokensWithoutRange, kKvWrite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const KvLayout layout{DType::kI8, 1, 8, 8};
  const std::vector<float> k{0, -0.0f, 0, 0, 0, 0, 0, 0}, tiny{1e-40f, 0, 0, 0, 0, 0, 0, -1e-31f};
  for (const std::vector<float>& x : {k, tiny, std::vector<float>{1, 2, 3, 4, -kInf, 0, 0, 0}}) {
    const AlignedBytes slab(kv_block_bytes(layout));
    const int32_t slot = 2;
    fn()({layout, x.data(), x.data(), &slot, slab.data(), 1}, {0, 1});
    float scale;
    std::memcpy(&scale, slab.data() + 8 * 16 + 2 * 4, 4);
    EXPECT_TRUE(std::isinf(x[4]) ? std::isnan(scale) : scale == 0) << scale;
    for (int i = 0; i < 8; ++i) EXPECT_EQ(slab.data()[i * 16 + 2], std::byte{0});
  }
}

}  // namespace
}  // namespace headrace
