#include "ops/rope.h"

#include <cmath>

#include "base/exact_math.h"

namespace headrace {

namespace ref {
static void rope_table(const RopeTableArgs& a, RowRange rows) noexcept {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* cos_of = a.cos_sin + r * 2 * a.half;
    float* sin_of = cos_of + a.half;
    for (int64_t i = 0; i < a.half; ++i) {
      const SinCos sc = exact_sincos(static_cast<double>(a.positions[r]) * static_cast<double>(a.inv_freq[i]));
      cos_of[i] = static_cast<float>(static_cast<double>(a.scale) * sc.cos);
      sin_of[i] = static_cast<float>(static_cast<double>(a.scale) * sc.sin);
    }
  }
}

static void rope(const RopeArgs& a, RowRange rows) noexcept {
  // Pair i is at x[i * step] and x[i * step + distance].
  const int64_t step = a.layout == RopeLayout::kInterleaved ? 2 : 1;
  const int64_t distance = a.layout == RopeLayout::kInterleaved ? 1 : a.half;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* cos_of = a.cos_sin + r * 2 * a.half;
    const float* sin_of = cos_of + a.half;
    for (int64_t h = 0; h < a.heads; ++h) {
      float* x = a.x + (r * a.heads + h) * a.head_dim;
      for (int64_t i = 0; i < a.half; ++i) {
        float& first = x[i * step];
        float& second = x[i * step + distance];
        const float rotated = std::fma(first, cos_of[i], -(second * sin_of[i]));
        second = std::fma(second, cos_of[i], first * sin_of[i]);
        first = rotated;
      }
    }
  }
}
}  // namespace ref

namespace avx2 {
void rope(const RopeArgs& a, RowRange rows) noexcept;
}
namespace avx512 {
void rope(const RopeArgs& a, RowRange rows) noexcept;
}

// Once a step, half values a row, in double: nothing to win with vectors.
constinit const OpTable<RopeTableFn> kRopeTable{"rope_table", {{Isa::kRef, ref::rope_table}}};
constinit const OpTable<RopeFn> kRope{
    "rope", {{Isa::kRef, ref::rope}, {Isa::kAvx2, HR_X86(avx2::rope)}, {Isa::kAvx512, HR_X86(avx512::rope)}}};

}  // namespace headrace
