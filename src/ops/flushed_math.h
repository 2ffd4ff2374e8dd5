#pragma once

#include <cmath>
#include <limits>

namespace headrace {

// f32 arithmetic in which subnormals are zero in operands and results: what x86 does with DAZ and FTZ set, and AMX
// tiles always. A result is flushed when, rounded to 24 bits whatever its exponent, it is below the least normal
// number.

[[nodiscard]] inline float flushed(float v) noexcept {
  return std::fabs(v) < std::numeric_limits<float>::min() ? std::copysign(0.0f, v) : v;
}

/// Sums of normal numbers that are subnormal are exact: nothing rounds up to the least normal number.
[[nodiscard]] inline float add_flushed(float a, float b) noexcept { return flushed(flushed(a) + flushed(b)); }

/// A result that rounds up to the least normal number only where the subnormals lie is found by computing it 2^128
/// times larger. Nothing overflows then: where the result is so small, c is below 2^-77, and so is a * b; neither
/// factor is below 2^-126.
[[nodiscard]] inline float fma_flushed(float a, float b, float c) noexcept {
  constexpr float kLeastNormal = std::numeric_limits<float>::min();
  a = flushed(a), b = flushed(b), c = flushed(c);
  const float result = std::fma(a, b, c);
  if (std::fabs(result) > kLeastNormal || result == 0 || std::isnan(result)) return flushed(result);
  const float larger = std::fma(a * 0x1p64f, b * 0x1p64f, c * 0x1p64f * 0x1p64f);
  return std::fabs(larger) < kLeastNormal * 0x1p64f * 0x1p64f ? std::copysign(0.0f, result) : result;
}
[[nodiscard]] inline float mul_flushed(float a, float b) noexcept { return fma_flushed(a, b, -0.0f); }

}  // namespace headrace
