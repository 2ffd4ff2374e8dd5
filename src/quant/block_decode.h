#pragma once

#include "quant/format.h"

/// Decoders built on a format's unpacker, so that each format's bits are taken apart in one place.
namespace headrace::quant {

enum class Minimum : bool { kNone, kUsed };

/// w = d * q, or d * q + m. A minimum of 0 is not added where there is none: it would turn -0 into +0.
template <auto kUnpack32, int kBlockBytes, Minimum kMinimum>
void decode_blocks32(const std::byte* row, int64_t num_elems, float* out) noexcept {
  UnpackedBlock32 block;
  for (; num_elems > 0; num_elems -= 32, row += kBlockBytes, out += 32) {
    kUnpack32(row, block);
    for (int i = 0; i < 32; ++i) {
      out[i] = block.d * static_cast<float>(block.q[i]);
      if constexpr (kMinimum == Minimum::kUsed) out[i] += block.m;
    }
  }
}

/// w = (d * scale) * q - dmin * min. With an f16 d both products are exact in f32 (11 bits of d, at most 7 of scale and
/// 6 of q), so the order of the factors changes nothing and at most the subtraction rounds.
template <auto kUnpack256, int kBlockBytes, int kScaleElems, Minimum kMinimum>
void decode_blocks256(const std::byte* row, int64_t num_elems, float* out) noexcept {
  UnpackedBlock256 block;
  for (; num_elems > 0; num_elems -= 256, row += kBlockBytes, out += 256) {
    kUnpack256(row, block);
    for (int sub = 0; sub < 256 / kScaleElems; ++sub) {
      const float scale = block.d * static_cast<float>(block.scale[sub]);
      const float min = block.dmin * static_cast<float>(block.min[sub]);
      for (int i = sub * kScaleElems; i < (sub + 1) * kScaleElems; ++i) {
        out[i] = scale * static_cast<float>(block.q[i]);
        if constexpr (kMinimum == Minimum::kUsed) out[i] -= min;
      }
    }
  }
}

}  // namespace headrace::quant
