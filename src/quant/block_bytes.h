#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/byte_order.h"
#include "base/half.h"
#include "tensor/dtype.h"

/// Reading and writing the fields of a block. Blocks lie at any address, so no field is touched but through these.
namespace headrace::quant {

/// Byte `i` as 0 to 255.
[[nodiscard]] inline int load_u8(const std::byte* block, int i) noexcept { return std::to_integer<int>(block[i]); }
/// Byte `i` as -128 to 127.
[[nodiscard]] inline int load_i8(const std::byte* block, int i) noexcept { return static_cast<int8_t>(block[i]); }
/// The low eight bits of `value` into byte `i`.
inline void store_u8(std::byte* block, int i, int value) noexcept { block[i] = static_cast<std::byte>(value & 0xff); }

[[nodiscard]] inline float load_f16(const std::byte* from) noexcept { return f16_to_f32(load_le<uint16_t>(from)); }
inline void store_f16(std::byte* to, float value) noexcept { store_le(to, f32_to_f16(value)); }

/// Halves of 16 bytes: element i in the low nibble of byte i, element i + 16 in the high nibble.
[[nodiscard]] inline int load_nibble32(const std::byte* bytes, int i) noexcept {
  return i < 16 ? load_u8(bytes, i) & 15 : load_u8(bytes, i - 16) >> 4;
}

/// All nibbles of `half` bytes: the low ones to q[0, half), the high ones after them. As fast as vectors make it: this
/// is what loading a model spends its time on.
template <int half>
void load_nibbles(const std::byte* bytes, int8_t* q) noexcept {
  uint8_t packed[half];  // a copy, which q cannot overlap
  std::memcpy(packed, bytes, half);
  for (int i = 0; i < half; ++i) q[i] = static_cast<int8_t>(packed[i] & 15);
  for (int i = 0; i < half; ++i) q[half + i] = static_cast<int8_t>(packed[i] >> 4);
}

/// All pairs of bits of 32 bytes, from the low ones up: the first of each byte to q[0, 32), the second after them, ...
inline void load_bit_pairs(const std::byte* bytes, int8_t* q) noexcept {
  uint8_t packed[32];
  std::memcpy(packed, bytes, sizeof packed);
  for (int s = 0; s < 4; ++s) {
    for (int i = 0; i < 32; ++i) q[32 * s + i] = static_cast<int8_t>(packed[i] >> 2 * s & 3);
  }
}

/// Adds bits to byte `i`, which is 0 there.
inline void add_bits(std::byte* block, int i, int bits) noexcept { block[i] |= static_cast<std::byte>(bits); }

/// Nibble `i` of bytes that hold two each, the low one first.
[[nodiscard]] inline int load_nibble(const std::byte* bytes, int i) noexcept {
  return (load_u8(bytes, i / 2) >> (4 * (i % 2))) & 15;
}

/// Where element `i` of 256 stands when 64 bytes hold 2 bits of each: the first 128 elements in the first 32 bytes,
/// elements l, l + 32, l + 64, l + 96 in byte l from its low bits up.
struct TwoBits {
  int byte, shift;
};
[[nodiscard]] constexpr TwoBits two_bits_of(int i) noexcept { return {i / 128 * 32 + i % 32, i % 128 / 32 * 2}; }

/// The same with 128 bytes and 4 bits each: each 64 elements in 32 bytes, l in the low and l + 32 in the high nibble.
struct FourBits {
  int byte, shift;
};
[[nodiscard]] constexpr FourBits four_bits_of(int i) noexcept { return {i / 64 * 32 + i % 32, i % 64 / 32 * 4}; }

}  // namespace headrace::quant
