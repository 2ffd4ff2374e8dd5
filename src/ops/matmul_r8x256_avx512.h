#pragma once

#include "ops/matmul_interleaved_avx512.h"
#include "ops/requant.h"

/// Expanding units of recipe r8x256 (requant.h) to bytes, for the AVX-512 and the AMX products.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

constexpr int kUnitSlabs = kUnitK / kSlabK;
constexpr int kSlabBytes = kKRows * 64;  // expanded

/// The integer of each lane of v, its low 16 bits in both halves of the lane.
inline __m512i word_pairs(__m512 v) {
  const __m512i both = _mm512_broadcast_i32x4(_mm_setr_epi32(0x01000100, 0x05040504, 0x09080908, 0x0d0c0d0c));
  return _mm512_shuffle_epi8(_mm512_cvtps_epi32(v), both);
}

/// S and B of a sub-block, as pairs of words.
struct StepBase {
  __m512i step, base;
};

/// `rows` vectors of codes to w8, with 128 added where `is_unsigned`.
template <DType T, bool is_unsigned, int rows>
void requant_rows(const __m512i* codes, StepBase sub_block, std::byte* out) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr int kAndOr = 0xea;  // (a & b) | c
  const __m512i low_bytes = _mm512_set1_epi16(0xff), high_bytes = _mm512_slli_epi16(low_bytes, 8);
  const __m512i sign = _mm512_set1_epi8(-128);
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    __m512i w8;
    if constexpr (is_high_product(kFormat)) {
      const __m512i q = _mm512_xor_si512(codes[r], sign);  // expand_slab gives q + 128
      const __m512i even = _mm512_srai_epi16(_mm512_slli_epi16(q, 8), 8), odd = _mm512_srai_epi16(q, 8);
      const __m512i low = _mm512_mulhrs_epi16(even, sub_block.step);
      const __m512i high = _mm512_slli_epi16(_mm512_mulhrs_epi16(odd, sub_block.step), 8);
      w8 = _mm512_ternarylogic_epi32(low_bytes, low, high, kAndOr);
      if constexpr (is_unsigned) w8 = _mm512_xor_si512(w8, sign);
    } else {
      const __m512i even = _mm512_and_si512(codes[r], low_bytes), odd = _mm512_srli_epi16(codes[r], 8);
      const __m512i low = _mm512_add_epi16(_mm512_mullo_epi16(even, sub_block.step), sub_block.base);
      const __m512i high = _mm512_add_epi16(_mm512_mullo_epi16(odd, sub_block.step), sub_block.base);
      w8 = _mm512_ternarylogic_epi32(high_bytes, high, _mm512_srli_epi16(low, 8), kAndOr);
    }
    _mm512_store_si512(out + 64 * r, w8);
  }
}

/// B of a sub-block in formats without minima, from its S.
template <DType T, bool is_unsigned>
__m512i base_of_step(__m512i step) {
  constexpr int kOffset = interleaved_format(T).code_offset, kShift = __builtin_ctz(kOffset | 1 << 16);
  const __m512i half = _mm512_set1_epi16(static_cast<int16_t>(is_unsigned ? 128 - 32768 : 128));
  return _mm512_sub_epi16(half, _mm512_slli_epi16(step, kShift));
}
/// B of a sub-block, its base times inv given.
template <bool is_unsigned>
__m512i base_of_min(__m512 base) {
  const __m512i half = _mm512_set1_epi16(static_cast<int16_t>(is_unsigned ? 128 - 32768 : 128));
  return _mm512_add_epi16(half, word_pairs(base));
}

/// A unit of `slabs` slabs to w8, kSlabBytes for each slab, with 128 added where `is_unsigned`. r_at: its scales.
template <DType T, bool is_unsigned>
void requant_unit(const std::byte* unit, int slabs, const std::byte* r_at, std::byte* out) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr bool kHasBase = !is_high_product(kFormat);
  const __m512 inv = _mm512_div_ps(_mm512_set1_ps(kHasBase ? 256.0f : 32768.0f), _mm512_loadu_ps(r_at));
  if constexpr (kFormat.block_elems == kSlabK) {
    const std::byte *d_at = unit + slabs * kFormat.slab_bytes, *m_at = d_at + slabs * kGroupF16Bytes;
    for (int s = 0; s < slabs; ++s) {
      fetch(unit + s * kFormat.unit_step_bytes, kFormat.unit_step_bytes);
      __m512i codes[kKRows];
      expand_slab<T>(unit + s * kFormat.slab_bytes, codes);
      StepBase sub_block{};
      sub_block.step = word_pairs(_mm512_mul_ps(load_f16(d_at + s * kGroupF16Bytes), inv));
      if constexpr (kFormat.has_min) {
        sub_block.base = base_of_min<is_unsigned>(_mm512_mul_ps(load_f16(m_at + s * kGroupF16Bytes), inv));
      } else if constexpr (kHasBase) {
        sub_block.base = base_of_step<T, is_unsigned>(sub_block.step);
      }
      requant_rows<T, is_unsigned, kKRows>(codes, sub_block, out + s * kSlabBytes);
    }
  } else {
    constexpr int kSubBlocks = kSlabK / kFormat.scale_elems;  // of a slab
    constexpr int kVectors = kUnitSlabs * kSubBlocks / 4, kSlabsOfVector = kUnitSlabs / kVectors;
    constexpr int kSubBlockRows = kKRows / kSubBlocks;
    const std::byte* scales_at = unit + kUnitSlabs * kFormat.slab_bytes;
    const std::byte* d_at = scales_at + kFormat.scale_bytes;
    const __m512 d = _mm512_mul_ps(load_f16(d_at), inv);
    const __m512 minus_dmin =
        _mm512_sub_ps(_mm512_setzero_ps(), _mm512_mul_ps(kFormat.has_min ? load_f16(d_at + kGroupF16Bytes) : inv, inv));
    for (int v = 0; v < kVectors; ++v) {
      __m512i scales = _mm512_loadu_si512(scales_at + 64 * v), mins = scales;
      if constexpr (kFormat.nibble_scales) {
        mins = and_shifted_left(scales, -4, 15);
        scales = and_shifted_left(scales, 0, 15);
      } else if constexpr (kFormat.has_min) {
        mins = _mm512_loadu_si512(scales_at + 64 * (kVectors + v));
      }
#pragma GCC unroll 4
      for (int i = 0; i < kSlabsOfVector; ++i) {
        const int s = v * kSlabsOfVector + i;
        fetch(unit + s * (kFormat.unit_bytes / kUnitSlabs), kFormat.unit_bytes / kUnitSlabs);
        __m512i codes[kKRows];
        expand_slab<T>(unit + s * kFormat.slab_bytes, codes);
#pragma GCC unroll 2
        for (int half = 0; half < kSubBlocks; ++half) {
          const int at = kSubBlocks * i + half;
          StepBase sub_block{};
          sub_block.step =
              word_pairs(_mm512_mul_ps(_mm512_cvtepi32_ps(byte_of_lane<kFormat.scale_signed>(scales, at)), d));
          if constexpr (kFormat.has_min) {
            sub_block.base =
                base_of_min<is_unsigned>(_mm512_mul_ps(_mm512_cvtepi32_ps(byte_of_lane<false>(mins, at)), minus_dmin));
          } else if constexpr (kHasBase) {
            sub_block.base = base_of_step<T, is_unsigned>(sub_block.step);
          }
          requant_rows<T, is_unsigned, kSubBlockRows>(codes + kSubBlockRows * half, sub_block,
                                                      out + s * kSlabBytes + 64 * kSubBlockRows * half);
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace
