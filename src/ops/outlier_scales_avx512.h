#pragma once

#include "ops/matmul_interleaved_avx512.h"

/// Outliers that come in channels of their own in each row, as behind an activation function: the scales and minima of
/// a group, multiplied out once, leave of decoding a weight the code, a product and a difference.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

class OutlierScales {
 public:
  /// Takes a group's scales; false where there are too many of them.
  template <DType T>
  bool prepare(const std::byte* weights, int64_t k) {
    constexpr InterleavedFormat kFormat = interleaved_format(T);
    if (k / kFormat.scale_elems > kMostSubBlocks) return false;
    const std::byte* unit = weights;
    for (int64_t done = 0, s = 0; done < k; done += kUnitK, unit += kFormat.unit_bytes) {
      if constexpr (kFormat.block_elems == kSlabK) {
        const int64_t rest = (k - done) / kSlabK, blocks = rest < 8 ? rest : 8;
        const std::byte* d_at = unit + blocks * kFormat.slab_bytes;
        for (int64_t b = 0; b < blocks; ++b, ++s, d_at += kGroupF16Bytes) {
          _mm512_store_ps(step_[s], load_f16(d_at));
          if constexpr (kFormat.has_min) _mm512_store_ps(base_[s], load_f16(d_at + blocks * kGroupF16Bytes));
        }
      } else {
        constexpr int kSubBlocks = kUnitK / kFormat.scale_elems, kVectors = kSubBlocks / 4;
        const std::byte* scales_at = unit + kUnitK / kSlabK * kFormat.slab_bytes;
        const std::byte* d_at = scales_at + kFormat.scale_bytes;
        const __m512 d = load_f16(d_at);
        for (int b = 0; b < kSubBlocks; ++b, ++s) {
          __m512i scale = bits_at(scales_at, b / 4, 8 * (b % 4), kFormat.nibble_scales ? 15 : 255);
          if constexpr (kFormat.scale_signed) scale = _mm512_srai_epi32(_mm512_slli_epi32(scale, 24), 24);
          _mm512_store_ps(step_[s], _mm512_mul_ps(d, _mm512_cvtepi32_ps(scale)));
          if constexpr (kFormat.has_min) {
            const __m512i min = kFormat.nibble_scales ? bits_at(scales_at, b / 4, 8 * (b % 4) + 4, 15)
                                                      : bits_at(scales_at, kVectors + b / 4, 8 * (b % 4), 255);
            _mm512_store_ps(base_[s], _mm512_mul_ps(load_f16(d_at + kGroupF16Bytes), _mm512_cvtepi32_ps(min)));
          }
        }
      }
    }
    return true;
  }

  /// As add_outliers.
  template <DType T>
  [[nodiscard]] __m512 add(const std::byte* weights, const std::byte* head, __m512 acc) const {
    constexpr InterleavedFormat kFormat = interleaved_format(T);
    const int count = load_int(head);
    for (int o = 0; o < count; ++o) {
      const std::byte* outlier = head + kOutlierHeadBytes + o * static_cast<int64_t>(sizeof(Outlier));
      const auto i = static_cast<unsigned>(load_int(outlier)), at = i % kUnitK;
      const std::byte* slab = weights + i / kUnitK * kFormat.unit_bytes + at / kSlabK * kFormat.slab_bytes;
      const __m512 q =
          _mm512_cvtepi32_ps(codes_at<T>(slab, static_cast<int>(at % kSlabK / 4), static_cast<int>(at % 4)));
      const unsigned s = i / static_cast<unsigned>(kFormat.scale_elems);
      __m512 w = _mm512_mul_ps(_mm512_load_ps(step_[s]), q);
      if constexpr (kFormat.has_min) {
        const __m512 base = _mm512_load_ps(base_[s]);
        w = kFormat.block_elems == kSlabK ? _mm512_add_ps(w, base) : _mm512_sub_ps(w, base);
      }
      acc = _mm512_fmadd_ps(w, _mm512_set1_ps(load_f32(outlier + 4)), acc);
    }
    return acc;
  }

 private:
  static constexpr int64_t kMostSubBlocks = 512;
  alignas(64) float step_[kMostSubBlocks][kNeuronGroup];
  alignas(64) float base_[kMostSubBlocks][kNeuronGroup];  ///< m, or dmin * min
};

}  // namespace
}  // namespace headrace
