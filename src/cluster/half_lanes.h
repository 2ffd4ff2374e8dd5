#pragma once

#include <bit>
#include <cstdint>

namespace headrace::cluster {

/// base/half.h's conversions of binary16 with selects in place of branches, so that loops over them are vectorised;
/// the same bits.
[[nodiscard]] inline uint16_t f32_to_f16_lane(float value) noexcept {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to an integer
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t abs = bits & 0x7fffffffu;
  const uint32_t normal = (abs + 0xfffu + ((abs >> 13) & 1u) - 0x38000000u) >> 13;
  // Below the least normal: a count of the least subnormal, 2^-24.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(abs) * 0x1p24f + kRound) & 0x7ffu;
  const uint32_t nan = 0x7e00u | ((abs >> 13) & 0x3ffu);
  uint32_t result = abs < 0x38800000u ? subnormal : normal;
  result = abs >= 0x477ff000u ? 0x7c00u : result;
  result = abs > 0x7f800000u ? nan : result;
  return static_cast<uint16_t>(sign | result);
}

[[nodiscard]] inline float f16_to_f32_lane(uint16_t half) noexcept {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = half & 0x7c00u;
  const uint32_t mantissa = half & 0x3ffu;
  const uint32_t normal = ((half & 0x7fffu) + 0x1c000u) << 13;
  const uint32_t subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(mantissa)) * 0x1p-24f);
  const uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
  const uint32_t special = 0x7f800000u | (mantissa << 13) | quiet;
  uint32_t result = exponent == 0 ? subnormal : normal;
  result = exponent == 0x7c00u ? special : result;
  return std::bit_cast<float>(sign | result);
}

}  // namespace headrace::cluster
