#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/half.h"

/// Roundings that the encoders share. None is undefined for any input: NaN takes the lower bound, infinities a bound.
namespace headrace::quant {

constexpr float kF16Max = 65504.0f;

/// Towards zero, within [lo, hi].
[[nodiscard]] inline int truncate_to(float value, int lo, int hi) noexcept {
  if (!(value >= static_cast<float>(lo))) return lo;
  return value >= static_cast<float>(hi) ? hi : static_cast<int>(value);
}

/// To the nearest integer, halves away from zero, within [lo, hi].
[[nodiscard]] inline int round_to(float value, int lo, int hi) noexcept {
  return truncate_to(std::round(value), lo, hi);
}

/// Up to an integer, within [lo, hi].
[[nodiscard]] inline int ceil_to(float value, int lo, int hi) noexcept { return truncate_to(std::ceil(value), lo, hi); }

/// 1 / value, and 0 for a block of zeros.
[[nodiscard]] inline float inverse_or_zero(float value) noexcept { return value == 0 ? 0.0f : 1.0f / value; }

/// The nearest finite f16 value.
[[nodiscard]] inline float nearest_f16(float value) noexcept {
  if (!(value > -kF16Max)) return -kF16Max;
  return f16_to_f32(f32_to_f16(std::min(value, kF16Max)));
}

/// The least f16 value that is at least `value` >= 0; the greatest finite one if there is none.
[[nodiscard]] inline float f16_at_least(float value) noexcept {
  if (!(value < kF16Max)) return kF16Max;
  const uint16_t nearest = f32_to_f16(value);
  return f16_to_f32(f16_to_f32(nearest) < value ? static_cast<uint16_t>(nearest + 1) : nearest);
}

/// The element of greatest magnitude, with its sign; the first of several.
[[nodiscard]] inline float extreme_of(const float* x, int num) noexcept {
  float extreme = 0;
  for (int i = 0; i < num; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  }
  return extreme;
}

struct Range {
  float lo, hi;
};
/// Least and greatest element.
[[nodiscard]] inline Range range_of(const float* x, int num) noexcept {
  Range range{x[0], x[0]};
  for (int i = 1; i < num; ++i) range = {std::min(range.lo, x[i]), std::max(range.hi, x[i])};
  return range;
}

}  // namespace headrace::quant
