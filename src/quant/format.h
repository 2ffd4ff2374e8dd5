#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace headrace {

/// The numbers inside one block of 32 elements: w[i] = d * q[i] + m.
struct UnpackedBlock32 {
  int8_t q[32];  ///< final integers: Q4_0 is already code - 8, IQ4_NL and MXFP4 are already looked up
  float d;
  float m;  ///< 0 where the format has no minimum
};

/// The numbers inside one block of 256 elements: w[i] = (d * scale[i / n]) * q[i] - dmin * min[i / n], n = scale_elems
/// of the format. Entries of scale and min past 256 / n are 0.
struct UnpackedBlock256 {
  int8_t q[256];     ///< signed values; unsigned codes in the formats with minima
  int8_t scale[16];  ///< signed values
  uint8_t min[16];   ///< 0 where the format has no minima
  float d;
  float dmin;  ///< 0 where the format has no minima
};

/// What the engine knows of a storage format: one row of the format table, one row for each type that holds weights.
/// Every function takes bytes at any alignment, accepts all bit patterns, and is a pure function of its input.
/// `num_elems` is a multiple of block_elems in dtype_info(dtype).
struct BlockFormat {
  DType dtype;
  /// Elements under one scale (16 or 32), 1 in plain number types. 16 or 32 consecutive elements of a row share it.
  int32_t scale_elems;
  /// Bounds of UnpackedBlock32::q or UnpackedBlock256::q over all blocks; 0, 0 where neither exists.
  int8_t q_min, q_max;
  /// Whether UnpackedBlock32::m or UnpackedBlock256::min is used.
  bool has_min;

  /// Exactly the values of the GGUF definition, evaluated in f32.
  void (*decode)(const std::byte* row, int64_t num_elems, float* out) noexcept;
  /// A valid and deterministic encoding, by rounding, without a search for the best scale. Input is finite.
  /// nullptr where there is none.
  void (*encode)(const float* row, int64_t num_elems, std::byte* out) noexcept = nullptr;
  /// One block of 32 elements into integers; nullptr for all other formats.
  void (*unpack32)(const std::byte* block, UnpackedBlock32& out) noexcept = nullptr;
  /// One block of 256 elements into integers; nullptr for all other formats.
  void (*unpack256)(const std::byte* block, UnpackedBlock256& out) noexcept = nullptr;
};

/// The row of a type; nullptr for types that hold no weights (F64, integers) or only intermediate results (Q8_1, Q8_K).
[[nodiscard]] const BlockFormat* find_format(DType dtype) noexcept;

/// All rows, in the order of DType.
[[nodiscard]] std::span<const BlockFormat* const> all_formats() noexcept;

}  // namespace headrace
