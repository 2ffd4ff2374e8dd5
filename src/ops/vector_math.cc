#include "ops/vector_math.h"

#include <bit>
#include <cmath>
#include <limits>

namespace headrace {

float exp_f32(float x) noexcept {
  if (x != x) return x;
  if (x > kExpHigh) return std::numeric_limits<float>::infinity();
  if (x < kExpLow) return 0.0f;
  const float t = std::fma(x, kExpLog2E, kExpShift);
  const float n = t - kExpShift;
  const float r = std::fma(n, -kExpLn2Low, std::fma(n, -kExpLn2High, x));
  float p = std::fma(kExpC6, r, kExpC5);
  p = std::fma(p, r, kExpC4);
  p = std::fma(p, r, kExpC3);
  p = std::fma(p, r, kExpC2);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (std::bit_cast<uint32_t>(t) << 23));
}

float sum_lanes16(const float (&lanes)[16]) noexcept {
  float sums[16];
  for (int c = 0; c < 16; ++c) sums[c] = lanes[c];
  for (int distance = 8; distance > 0; distance /= 2) {
    for (int c = 0; c < distance; ++c) sums[c] += sums[c + distance];
  }
  return sums[0];
}

namespace ref {
static void exp(const ExpArgs& a, RowRange values) noexcept {
  for (int64_t i = values.begin; i < values.end; ++i) a.y[i] = exp_f32(a.x[i]);
}
}  // namespace ref

namespace avx2 {
void exp(const ExpArgs& a, RowRange values) noexcept;
}
namespace avx512 {
void exp(const ExpArgs& a, RowRange values) noexcept;
}

constinit const OpTable<ExpFn> kExp{
    "exp", {{Isa::kRef, ref::exp}, {Isa::kAvx2, HR_X86(avx2::exp)}, {Isa::kAvx512, HR_X86(avx512::exp)}}};

}  // namespace headrace
