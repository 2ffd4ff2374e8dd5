#pragma once

#include "quant/block_bytes.h"
#include "quant/format.h"

/// The 8 scales and 8 minima of 6 bits in 12 bytes that Q4_K and Q5_K share, for j = 0 to 3:
///
///   byte j      bits 0-5: scale j      bits 6-7: bits 4-5 of scale j + 4
///   byte 4 + j  bits 0-5: min j        bits 6-7: bits 4-5 of min j + 4
///   byte 8 + j  bits 0-3: bits 0-3 of scale j + 4      bits 4-7: bits 0-3 of min j + 4
///
/// Source: get_scale_min_k4 in ggml-quants.c of ggml.
namespace headrace::quant {

inline void load_scales_6bit(const std::byte* bytes, UnpackedBlock256& out) noexcept {
  for (int j = 0; j < 4; ++j) {
    const int scale = load_u8(bytes, j), min = load_u8(bytes, 4 + j), low = load_u8(bytes, 8 + j);
    out.scale[j] = static_cast<int8_t>(scale & 63);
    out.min[j] = static_cast<uint8_t>(min & 63);
    out.scale[j + 4] = static_cast<int8_t>((low & 15) | scale >> 6 << 4);
    out.min[j + 4] = static_cast<uint8_t>(low >> 4 | min >> 6 << 4);
  }
}

inline void store_scales_6bit(const UnpackedBlock256& block, std::byte* bytes) noexcept {
  for (int j = 0; j < 4; ++j) {
    store_u8(bytes, j, block.scale[j] | block.scale[j + 4] >> 4 << 6);
    store_u8(bytes, 4 + j, block.min[j] | block.min[j + 4] >> 4 << 6);
    store_u8(bytes, 8 + j, (block.scale[j + 4] & 15) | (block.min[j + 4] & 15) << 4);
  }
}

}  // namespace headrace::quant
