#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

/// E2M1 numbers (sign, 2 bits of exponent, 1 of fraction) doubled, so that they are integers: 0, 1, 2, 3, 4, 6, 8, 12.
/// Source: OCP Microscaling Formats (MX) specification 1.0, section 5.3.3.
namespace headrace::quant {

inline constexpr int8_t kFp4Levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Code of the level nearest to `value`, the smaller magnitude of two at equal distance; NaN gives 0.
[[nodiscard]] inline int nearest_fp4_code(float value) noexcept {
  int code = 0;
  while (code < 7 && std::abs(value) > 0.5f * static_cast<float>(kFp4Levels[code] + kFp4Levels[code + 1])) ++code;
  return value < 0 && code > 0 ? code + 8 : code;
}

}  // namespace headrace::quant
