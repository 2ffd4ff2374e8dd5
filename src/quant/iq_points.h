#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

/// Expansion of the codebook points of the IQ2 and IQ3 formats; signs are bits, the first element's lowest, set: minus.
namespace headrace::quant {

/// Eight signs from the lowest seven bits of `bits`: the eighth makes the number of minus signs even.
[[nodiscard]] inline int signs_of_7bits(int bits) noexcept {
  const auto seven = static_cast<unsigned>(bits) & 127u;
  return static_cast<int>(seven | (static_cast<unsigned>(std::popcount(seven)) & 1u) << 7);
}

/// Eight values of a point of an IQ2 codebook.
inline void iq2_point(uint16_t point, int signs, int8_t* q) noexcept {
  constexpr int8_t kLevels[4] = {8, 25, 43, 0};  // no point has code 3
  for (int j = 0; j < 8; ++j) {
    const int level = kLevels[(point >> (2 * j)) & 3];
    q[j] = static_cast<int8_t>((signs >> j) & 1 ? -level : level);
  }
}

/// Four values of a point of an IQ3 codebook with these levels.
inline void iq3_point(uint16_t point, const int8_t (&levels)[8], int signs, int8_t* q) noexcept {
  for (int j = 0; j < 4; ++j) {
    const int level = levels[(point >> (4 * j)) & 7];
    q[j] = static_cast<int8_t>((signs >> j) & 1 ? -level : level);
  }
}

}  // namespace headrace::quant
