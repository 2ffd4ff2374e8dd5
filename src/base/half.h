#pragma once

#include <bit>
#include <cstdint>

namespace headrace {

/// IEEE binary16 bits to float, exact (subnormals and NaN included).
[[nodiscard]] inline float f16_to_f32(uint16_t h) noexcept {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu;
  uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0x1f)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x400000u : 0u));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  const auto shift = static_cast<uint32_t>(std::countl_zero(mantissa)) - 21u;  // moves the top bit to bit 10
  mantissa = (mantissa << shift) & 0x3ffu;
  return std::bit_cast<float>(sign | ((113u - shift) << 23) | (mantissa << 13));
}

/// float to the nearest binary16, ties to even; overflow gives infinity, NaN stays NaN (quiet). Equals VCVTPS2PH.
[[nodiscard]] inline uint16_t f32_to_f16(float f) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t abs = bits & 0x7fffffffu;
  if (abs > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((abs >> 13) & 0x3ffu));
  if (abs >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and above round to infinity
  if (abs >= 0x38800000u) {                                              // normal
    const uint32_t rounded = abs + 0xfffu + ((abs >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
  if (abs < 0x33000000u) return sign;  // below half of the least subnormal
  const uint32_t exponent = abs >> 23;
  const uint32_t mantissa = (abs & 0x7fffffu) | 0x800000u;
  const uint32_t shift = 126u - exponent;  // 14 to 24
  const uint32_t half = 1u << (shift - 1);
  const uint32_t rest = mantissa & ((1u << shift) - 1u);
  uint32_t result = mantissa >> shift;
  if (rest > half || (rest == half && (result & 1u))) ++result;
  return static_cast<uint16_t>(sign | result);
}

/// bfloat16 bits to float, exact.
[[nodiscard]] inline float bf16_to_f32(uint16_t h) noexcept {
  return std::bit_cast<float>(static_cast<uint32_t>(h) << 16);
}

/// float to the nearest bfloat16, ties to even; NaN stays NaN (quiet).
[[nodiscard]] inline uint16_t f32_to_bf16(float f) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace headrace
