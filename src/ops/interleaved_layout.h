#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

/// The layout kInterleaved16, shared by packing, the reference and all vector kernels.
///
/// A matrix is a row of *groups* of 16 neurons, a group a row of *units* of 256 k (the last one shorter where k is no
/// multiple of 256). A unit of b blocks:
///
///   formats with blocks of 32 (b <= 8):      slab 0 .. slab b-1 | d[b][16] f16 | m[b][16] f16
///   formats with blocks of 256 (b = 1):      slab 0 .. slab 7   | scales | mins | d[16] f16 | dmin[16] f16 | to 64
///   bytes (m, mins, dmin: only in formats with minima)
///
/// A *slab* is 32 k of 16 neurons: eight k-rows of 64 bytes each, once expanded to a byte a code. Byte 4 * j + i of
/// k-row r belongs to neuron j, k = 4 * r + i: an operand of vpdpbusd, a row of an AMX tile, two operands of maddubs.
///
///            neuron 0           neuron 1                neuron 15
///   k-row 0  k0  k1  k2  k3     k0  k1  k2  k3    ...   k0  k1  k2  k3
///   k-row 1  k4  k5  k6  k7     k4  ...                                       up to k-row 7: k28 .. k31
///
/// Codes are unsigned, q = code - code_offset. Packed, a slab is one or two planes of 64-byte vectors:
///   8 bits   8 vectors, a k-row each
///   4 bits   4 vectors, vector z: k-row 2z in the low nibbles, 2z + 1 in the high ones
///   5 bits   the same for bits 0 to 3, then 1 vector: bit t of each byte is bit 4 of k-row t
///   6 bits   the same for bits 0 to 3, then 2 vectors: bits 2t, 2t + 1 of vector v are bits 4, 5 of k-row 4v + t
///   2 bits   2 vectors: bits 2t, 2t + 1 of vector v are k-row 4v + t
///   3 bits   the same for bits 0 and 1, then 1 vector: bit t of each byte is bit 2 of k-row t
///
/// Scales and mins are bytes, 64-byte vectors too: byte 4 * j + i of vector v is neuron j, sub-block 4v + i. Q2_K has
/// one set of them, scale in the low nibble, min in the high one.
namespace headrace {

/// What the layout and the products must know of a format.
struct InterleavedFormat {
  DType dtype;
  int block_elems;     ///< 32 or 256
  int code_bits;       ///< 2, 3, 4, 5, 6 or 8
  int code_offset;     ///< q = code - code_offset
  bool code_is_level;  ///< q is the IQ4 level of that number instead
  int scale_elems;     ///< k under one scale: 16 or 32
  bool scale_signed;
  bool nibble_scales;  ///< scale and min share a byte
  bool has_min;

  int slab_bytes;
  int scale_bytes;      ///< of one unit, scales and mins together; 0 in blocks of 32
  int unit_bytes;       ///< of a whole unit
  int unit_step_bytes;  ///< of 1 block where blocks are of 32, else of a unit: a group takes k / block_elems of them
};

inline constexpr int kSlabK = 32;
inline constexpr int kUnitK = 256;
inline constexpr int kGroupF16Bytes = 32;  ///< an f16 for each of 16 neurons

struct InterleavedFacts {
  DType dtype;
  int block_elems, code_bits, code_offset, scale_elems;
  bool scale_signed, has_min;
};

// consteval: evaluated while compiling only, so that no copy of it compiled for one instruction set can serve another.
consteval InterleavedFormat interleaved_row(InterleavedFacts f) {
  InterleavedFormat row{};
  row.dtype = f.dtype;
  row.block_elems = f.block_elems;
  row.code_bits = f.code_bits;
  row.code_offset = f.code_offset;
  row.code_is_level = f.dtype == DType::kIQ4_NL || f.dtype == DType::kIQ4_XS;
  row.scale_elems = f.scale_elems;
  row.scale_signed = f.scale_signed;
  row.nibble_scales = f.dtype == DType::kQ2_K;
  row.has_min = f.has_min;
  row.slab_bytes = kSlabK * 16 * f.code_bits / 8;
  const int f16_bytes = kGroupF16Bytes * (f.has_min ? 2 : 1);
  if (f.block_elems == kSlabK) {
    row.unit_step_bytes = row.slab_bytes + f16_bytes;
    row.unit_bytes = row.unit_step_bytes * (kUnitK / kSlabK);
  } else {
    row.scale_bytes = kUnitK / f.scale_elems * 16 * (f.has_min && !row.nibble_scales ? 2 : 1);
    row.unit_bytes = (row.slab_bytes * (kUnitK / kSlabK) + row.scale_bytes + f16_bytes + 63) / 64 * 64;
    row.unit_step_bytes = row.unit_bytes;
  }
  return row;
}

inline constexpr InterleavedFormat kInterleavedFormats[]{
    interleaved_row({DType::kQ4_0, 32, 4, 8, 32, false, false}),
    interleaved_row({DType::kQ4_1, 32, 4, 0, 32, false, true}),
    interleaved_row({DType::kQ5_0, 32, 5, 16, 32, false, false}),
    interleaved_row({DType::kQ5_1, 32, 5, 0, 32, false, true}),
    interleaved_row({DType::kQ8_0, 32, 8, 128, 32, false, false}),
    interleaved_row({DType::kIQ4_NL, 32, 4, 0, 32, false, false}),
    interleaved_row({DType::kQ2_K, 256, 2, 0, 16, false, true}),
    interleaved_row({DType::kQ3_K, 256, 3, 4, 16, true, false}),
    interleaved_row({DType::kQ4_K, 256, 4, 0, 32, false, true}),
    interleaved_row({DType::kQ5_K, 256, 5, 0, 32, false, true}),
    interleaved_row({DType::kQ6_K, 256, 6, 32, 16, true, false}),
    interleaved_row({DType::kIQ4_XS, 256, 4, 0, 32, true, false}),
};

/// The row of a type while compiling.
consteval InterleavedFormat interleaved_format(DType dtype) {
  for (const InterleavedFormat& row : kInterleavedFormats) {
    if (row.dtype == dtype) return row;
  }
  throw "this type has no interleaved layout";
}
/// The row of a type while running; nullptr where there is none.
[[nodiscard]] const InterleavedFormat* find_interleaved(DType dtype) noexcept;

/// Bytes of one group of 16 neurons.
[[nodiscard]] int64_t interleaved_group_bytes(const InterleavedFormat& format, int64_t k) noexcept;

/// One unit of one neuron in numbers: `blocks` blocks of q, scale, min, d and m, as quant/format.h defines them.
struct NeuronUnit {
  alignas(64) int8_t q[kUnitK];
  int8_t scale[16];
  uint8_t min[16];
  float d[8];
  float m[8];  ///< dmin in blocks of 256
};

/// Writes a unit of `blocks` blocks, the 16 neurons given.
void write_unit(const InterleavedFormat& format, const NeuronUnit neurons[16], int blocks, std::byte* unit) noexcept;
/// Reads neuron `lane` (0 to 15) of a unit. Parts that the format lacks are left as they are.
void read_unit(const InterleavedFormat& format, const std::byte* unit, int blocks, int lane, NeuronUnit& out) noexcept;

}  // namespace headrace
