#pragma once

#include <cstdint>

#include "ops/op_table.h"

namespace headrace {

/// Recipe "exp v1", the f32 exponential of all kernels; error below 1 ulp (0.87 measured).
///   x is NaN: x.   x > kExpHigh: infinity.   x < kExpLow: +0 (where the result would be subnormal).   Else:
///   t = fma(x, kExpLog2E, kExpShift); n = t - kExpShift, the nearest integer of x / ln 2;
///   r = fma(n, -kExpLn2Low, fma(n, -kExpLn2High, x));  (the inner one is exact)
///   p = 1 + r + r^2 / 2 + c3 r^3 + ... + c6 r^6 by Horner's rule in fused multiply-adds: a minimax fit of e^r whose
///   first three coefficients are exact, relative error 5.3e-9 on [-ln 2 / 2, ln 2 / 2];
///   the result is p with n added to its exponent: the low bits of t, shifted there.
/// vector_math_avx2.h and vector_math_avx512.h are the same in vectors.
[[nodiscard]] float exp_f32(float x) noexcept;

inline constexpr float kExpHigh = 0x1.62e42ep+6f;  ///< 88.7228, the last float below 128 ln 2
inline constexpr float kExpLow = -0x1.5d589ep+6f;  ///< -87.3365, the last float above -126 ln 2
inline constexpr float kExpLog2E = 0x1.715476p+0f;
inline constexpr float kExpShift = 0x1.8p+23f;  ///< floats of this size have no fraction bits; its low 22 bits are 0
inline constexpr float kExpLn2High = 0x1.62e43p-1f;
inline constexpr float kExpLn2Low = -0x1.05c61p-29f;
inline constexpr float kExpC2 = 0.5f, kExpC3 = 0x1.5554b2p-3f, kExpC4 = 0x1.55557ep-5f, kExpC5 = 0x1.12266ep-7f,
                       kExpC6 = 0x1.6c8302p-10f;

/// The tree that joins 16 chains: (c, c + 8), (c, c + 4), (c, c + 2), (c, c + 1).
[[nodiscard]] float sum_lanes16(const float (&lanes)[16]) noexcept;

/// y[i] = exp(x[i]), f32; y may equal x. Items: values.
struct ExpArgs {
  const float* x = nullptr;
  float* y = nullptr;
};
using ExpFn = void (*)(const ExpArgs&, RowRange) noexcept;
extern const OpTable<ExpFn> kExp;

}  // namespace headrace
