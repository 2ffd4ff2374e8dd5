#pragma once

#include "ops/interleaved_layout.h"

/// The layout kRequant16 and the numbers of recipe r8x256 (matmul.h): weights of few bits that become one int8 each,
/// with one scale for a unit of 256 k, whenever a product reads them.
///
/// A group of 16 neurons is that of kInterleaved16 (interleaved_layout.h), then f32 r[16] for each of its units. So the
/// file's own weights can still be read exactly: embeddings and outliers take those.
///
/// In each sub-block (k under one scale) of a unit, step = d * scale and base = m or -(dmin * min) as the type has
/// them, q the signed codes; every f32 operation rounded. What a code can stand for at most in the unit, in use or not,
/// is
///   R = max over sub-blocks of   |step| * 128                        8-bit codes and IQ4 levels
///                                |step| * offset                     other types without minima
///                                |base| and |step * largest + base|  types with minima, largest = 2^bits - 1
/// and r = R / 127. R is not a number where one of these is not. Then
///   8-bit codes and levels:  inv = 32768 / r;  S = int(step * inv);  w8 = (q * S + 2^14) >> 15
///   others:                  inv = 256 / r;    S = int(step * inv);  w8 = (code * S + B) >> 8, in 16 bits that wrap
///     B = 128 - offset * S without minima, else 128 + int(base * inv)
/// where step * inv is d * inv or scale * (d * inv), base * inv is m * inv or -(min * (dmin * inv)), and int() rounds
/// to the nearest integer, ties to even; 0 where that is not a number. |w8| <= 127, and w8 * r differs from the weight
/// by at most (1/2 + e) * r with e = 128 / 2^16 for 8-bit codes and levels, else (|q| + 1) / 512 for the largest |q|.
/// A unit with an infinite or undefined R has w8 = 0 and r infinite or undefined, so that its products are not numbers.
namespace headrace {

/// Whether w8 is a rounded high product: 8-bit codes and levels.
[[nodiscard]] constexpr bool is_high_product(const InterleavedFormat& format) noexcept {
  return format.code_bits == 8 || format.code_is_level;
}
inline constexpr int kRequantScaleBytes = 64;  ///< the r of a unit of a group

[[nodiscard]] int64_t requant_units(int64_t k) noexcept;
/// Bytes of one group of 16 neurons.
[[nodiscard]] int64_t requant_group_bytes(const InterleavedFormat& format, int64_t k) noexcept;

/// The r of one unit of one neuron.
[[nodiscard]] float requant_scale(const InterleavedFormat& format, const NeuronUnit& unit, int blocks) noexcept;
/// The w8 of one unit of one neuron, `blocks` * block_elems of them.
void requant_unit(const InterleavedFormat& format, const NeuronUnit& unit, int blocks, float r, int8_t* w8) noexcept;

}  // namespace headrace
