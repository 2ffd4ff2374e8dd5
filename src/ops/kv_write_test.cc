#include "base/half.h"
#include "ops/attention.h"
#include "ops/op_test.h"

namespace headrace {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kF16};

OP_TEST(KvWrite, MatchesReference, kKvWrite) {
  for (DType dtype : kDTypes) {
    for (int32_t head_dim : {1, 3, 5, 7, 8, 9, 20, 24, 64, 80, 128}) {
      for (int32_t v_head_dim : {head_dim, head_dim + 13}) {
        const KvLayout layout{dtype, 3, head_dim, v_head_dim};
        const std::vector<int32_t> slots{5 * 16 + 3, 0, 2 * 16 + 15, 5 * 16 + 4};
        const int64_t rows = 4;
        const Rows k = random_rows({rows, 3 * head_dim, 1, -4, 4, 13, seed()});
        const Rows v = random_rows({rows, 3 * v_head_dim, 3, -4, 4, 13, seed() + 1});
        const AlignedBytes got(6 * kv_block_bytes(layout)), want(6 * kv_block_bytes(layout));
        reference()({layout, k.data(), v.data(), slots.data(), want.data(), rows}, {0, rows});
        fn()({layout, k.data(), v.data(), slots.data(), got.data(), rows}, {3, rows});
        fn()({layout, k.data(), v.data(), slots.data(), got.data(), rows}, {0, 3});
        expect_bit_equal(label(cat(dtype_name(dtype), " head_dim ", head_dim, " v_head_dim ", v_head_dim)), got.span(),
                         want.span());
      }
    }
  }
}

OP_TEST(KvWrite, PutsEveryElementInItsPlace, kKvWrite) {
  for (DType dtype : kDTypes) {
    const KvLayout layout{dtype, 2, 20, 12};
    EXPECT_EQ(kv_block_bytes(layout), 2 * 16 * (20 + 12) * (dtype == DType::kF16 ? 2 : 4));
    const AlignedBytes slab(3 * kv_block_bytes(layout));
    const Rows k = random_rows({.rows = 1, .dim = 2 * 20, .seed = seed()});
    const Rows v = random_rows({.rows = 1, .dim = 2 * 12, .seed = seed() + 1});
    const int32_t slot = 2 * 16 + 9;
    fn()({layout, k.data(), v.data(), &slot, slab.data(), 1}, {0, 1});
    const auto at = [&](int64_t element) {
      if (dtype == DType::kF16) {
        uint16_t half;
        std::memcpy(&half, slab.data() + 2 * kv_block_bytes(layout) + element * 2, 2);
        return f16_to_f32(half);
      }
      float value;
      std::memcpy(&value, slab.data() + 2 * kv_block_bytes(layout) + element * 4, 4);
      return value;
    };
    const auto rounded = [&](float x) { return dtype == DType::kF16 ? f16_to_f32(f32_to_f16(x)) : x; };
    for (int g = 0; g < 2; ++g) {
      const int64_t head = g * 16 * (20 + 12);
      for (int i = 0; i < 20; ++i) EXPECT_EQ(at(head + i * 16 + 9), rounded(k.data()[g * 20 + i])) << g << " " << i;
      for (int i = 0; i < 12; ++i) {
        EXPECT_EQ(at(head + 20 * 16 + 9 * 12 + i), rounded(v.data()[g * 12 + i])) << g << " " << i;
      }
    }
    int64_t written = 0;
    for (std::byte b : slab.span()) written += b != std::byte{0xcd} ? 1 : 0;
    EXPECT_LE(written, 2 * (20 + 12) * (dtype == DType::kF16 ? 2 : 4));
  }
}

}  // namespace
}  // namespace headrace
