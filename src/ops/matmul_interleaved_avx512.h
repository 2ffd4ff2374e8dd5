#pragma once

#include <immintrin.h>

#include "ops/interleaved_layout.h"
#include "ops/matmul_kernels.h"
#include "quant/iq4_levels.h"

/// What the AVX-512 and the AMX products of interleaved weights share: codes of a slab as bytes, the outliers of a row,
/// the way of a result to y. A lane of every vector is one of the group's 16 neurons.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

constexpr int kKRows = 8;  // k-rows of a slab
// How far ahead weights are fetched. The hardware's own prefetcher stops at pages of 4 KiB and is too late for one row,
// which reads 37 lines for every 64 vpdpbusd. Of 1.5 to 10 KiB, 1.5 to 3 were best (Emerald Rapids; 10 KiB lost 15 %).
// More than a block of Q4_K, whose scales stand at its end and are read first.
constexpr int64_t kAheadBytes = 2560;

inline int load_int(const void* p) {
  int value;
  __builtin_memcpy(&value, p, 4);
  return value;
}
inline float load_f32(const std::byte* p) {
  float value;
  __builtin_memcpy(&value, p, 4);
  return value;
}
inline int load_i16(const std::byte* p) {
  int16_t value;
  __builtin_memcpy(&value, p, 2);
  return value;
}
inline __m512i broadcast_int(const void* p) { return _mm512_set1_epi32(load_int(p)); }
inline __m512 load_f16(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline __m512i and_shifted_left(__m512i v, int shift, int mask) {
  const __m512i moved = shift >= 0 ? _mm512_slli_epi16(v, static_cast<unsigned>(shift))
                                   : _mm512_srli_epi16(v, static_cast<unsigned>(-shift));
  return _mm512_and_si512(moved, _mm512_set1_epi8(static_cast<char>(mask)));
}

/// What to subtract from codes to get the q of the recipe; levels are kept unsigned by adding 128.
consteval int offset_of(InterleavedFormat format) { return format.code_is_level ? 128 : format.code_offset; }

inline void fetch(const std::byte* p, int bytes) {
  for (int i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p + kAheadBytes + i), _MM_HINT_T0);
}

/// The codes of a slab, a vector for each k-row.
template <DType T>
void expand_slab(const std::byte* slab, __m512i* w) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr int kBits = kFormat.code_bits;
  const auto vector = [slab](int i) { return _mm512_loadu_si512(slab + 64 * i); };
  if constexpr (kBits == 8) {
    for (int r = 0; r < kKRows; ++r) w[r] = vector(r);
  } else if constexpr (kBits == 2 || kBits == 3) {
    for (int r = 0; r < kKRows; ++r) w[r] = and_shifted_left(vector(r / 4), -2 * (r % 4), 3);
  } else {
    for (int r = 0; r < kKRows; ++r) w[r] = and_shifted_left(vector(r / 2), r % 2 * -4, 15);
  }
  if constexpr (kBits == 3 || kBits == 5) {
    constexpr int kTop = kBits - 1;
    const __m512i high = vector(kTop);  // after 2 or 4 vectors of low bits
    for (int r = 0; r < kKRows; ++r) w[r] = _mm512_or_si512(w[r], and_shifted_left(high, kTop - r, 1 << kTop));
  }
  if constexpr (kBits == 6) {
    for (int r = 0; r < kKRows; ++r) {
      w[r] = _mm512_or_si512(w[r], and_shifted_left(vector(4 + r / 4), 4 - 2 * (r % 4), 0x30));
    }
  }
  if constexpr (kFormat.code_is_level) {
    const __m128i levels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&quant::kIq4Levels));
    const __m512i table = _mm512_broadcast_i32x4(_mm_xor_si128(levels, _mm_set1_epi8(-128)));
    for (int r = 0; r < kKRows; ++r) w[r] = _mm512_shuffle_epi8(table, w[r]);
  }
}

inline void store(const MatmulArgs& args, int64_t group, int64_t row, __m512 acc) {
  const int64_t first = group * kNeuronGroup, rest = args.w.n - first;
  const auto mask = static_cast<__mmask16>(rest < kNeuronGroup ? (1 << rest) - 1 : 0xffff);
  if (args.bias != nullptr) acc = _mm512_add_ps(acc, _mm512_maskz_loadu_ps(mask, args.bias + first));
  _mm512_mask_storeu_ps(args.y + row * args.y_stride + first, mask, acc);
}

/// `mask` bits of each lane of vector `i` at `p`, from bit `shift` on.
inline __m512i bits_at(const std::byte* p, int i, int shift, int mask) {
  const __m512i v = _mm512_loadu_si512(p + 64 * i);
  return _mm512_and_si512(_mm512_srl_epi32(v, _mm_cvtsi32_si128(shift)), _mm512_set1_epi32(mask));
}

/// Byte `i` of each lane as a 32-bit number.
template <bool is_signed>
__m512i byte_of_lane(__m512i v, int i) {
  if constexpr (is_signed) {
    return _mm512_srai_epi32(_mm512_slli_epi32(v, static_cast<unsigned>(24 - 8 * i)), 24);
  } else {
    return _mm512_and_si512(_mm512_srli_epi32(v, static_cast<unsigned>(8 * i)), _mm512_set1_epi32(255));
  }
}

/// Bytes `i` and `j` of each lane as a pair of 16-bit numbers.
template <bool is_signed>
__m512i byte_pair_of_lane(__m512i v, int i, int j) {
  if constexpr (is_signed) {  // into the high bytes, then down with the sign
    const __m128i pick = _mm_set1_epi32(0x00800080 | i << 8 | j << 24);
    const __m512i offsets =
        _mm512_broadcast_i32x4(_mm_add_epi8(pick, _mm_setr_epi32(0, 0x04000400, 0x08000800, 0x0c000c00)));
    return _mm512_srai_epi16(_mm512_shuffle_epi8(v, offsets), 8);
  } else {
    const __m128i pick = _mm_set1_epi32(static_cast<int>(0x80008000u) | i | j << 16);
    const __m512i offsets =
        _mm512_broadcast_i32x4(_mm_add_epi8(pick, _mm_setr_epi32(0, 0x00040004, 0x00080008, 0x000c000c)));
    return _mm512_shuffle_epi8(v, offsets);
  }
}

/// The q of byte `i` (0 to 3) of k-row `r` of a slab.
template <DType T>
__m512i codes_at(const std::byte* slab, int r, int i) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr int kBits = kFormat.code_bits, kTop = kBits - 1;
  __m512i code;
  if constexpr (kBits == 8) {
    code = bits_at(slab, r, 8 * i, 255);
  } else if constexpr (kBits == 2 || kBits == 3) {
    code = bits_at(slab, r / 4, 8 * i + 2 * (r % 4), 3);
  } else {
    code = bits_at(slab, r / 2, 8 * i + 4 * (r % 2), 15);
  }
  if constexpr (kBits == 3 || kBits == 5) {
    code = _mm512_or_si512(code, _mm512_slli_epi32(bits_at(slab, kTop, 8 * i + r, 1), kTop));
  }
  if constexpr (kBits == 6) {
    code = _mm512_or_si512(code, _mm512_slli_epi32(bits_at(slab, 4 + r / 4, 8 * i + 2 * (r % 4), 3), 4));
  }
  if constexpr (kFormat.code_is_level) {
    const __m128i levels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&quant::kIq4Levels));
    return _mm512_permutexvar_epi32(code, _mm512_cvtepi8_epi32(levels));
  } else {
    return _mm512_sub_epi32(code, _mm512_set1_epi32(kFormat.code_offset));
  }
}

/// What a sub-block's codes are multiplied by, and what is added (m) or subtracted (dmin * min) then.
struct SubBlock {
  __m512 step, base;
};
/// The sub-block of input `at` of a unit of `blocks` blocks.
template <DType T>
SubBlock sub_block_of(const std::byte* unit, int blocks, int at) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  SubBlock sub_block{};
  if constexpr (kFormat.block_elems == kSlabK) {
    const std::byte* d_at = unit + blocks * kFormat.slab_bytes + at / kSlabK * kGroupF16Bytes;
    sub_block.step = load_f16(d_at);
    if constexpr (kFormat.has_min) sub_block.base = load_f16(d_at + blocks * kGroupF16Bytes);
  } else {
    constexpr int kVectors = kUnitK / kFormat.scale_elems / 4;
    const std::byte* scales_at = unit + kUnitK / kSlabK * kFormat.slab_bytes;
    const std::byte* d_at = scales_at + kFormat.scale_bytes;
    const int s = at / kFormat.scale_elems;
    __m512i scale = bits_at(scales_at, s / 4, 8 * (s % 4), kFormat.nibble_scales ? 15 : 255);
    if constexpr (kFormat.scale_signed) scale = _mm512_srai_epi32(_mm512_slli_epi32(scale, 24), 24);
    sub_block.step = _mm512_mul_ps(load_f16(d_at), _mm512_cvtepi32_ps(scale));
    if constexpr (kFormat.has_min) {
      const __m512i min = kFormat.nibble_scales ? bits_at(scales_at, s / 4, 8 * (s % 4) + 4, 15)
                                                : bits_at(scales_at, kVectors + s / 4, 8 * (s % 4), 255);
      sub_block.base = _mm512_mul_ps(load_f16(d_at + kGroupF16Bytes), _mm512_cvtepi32_ps(min));
    }
  }
  return sub_block;
}

/// The weights of codes q of a sub-block, in f32.
template <DType T>
__m512 weights_of(SubBlock sub_block, __m512i q) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const __m512 w = _mm512_mul_ps(sub_block.step, _mm512_cvtepi32_ps(q));
  if constexpr (!kFormat.has_min) return w;
  return kFormat.block_elems == kSlabK ? _mm512_add_ps(w, sub_block.base) : _mm512_sub_ps(w, sub_block.base);
}

/// Blocks in the unit that holds input `i` of k: the last one may be shorter.
template <DType T>
int blocks_of_unit(int64_t k, int64_t i) {
  constexpr int kBlocks = kUnitK / interleaved_format(T).block_elems;
  const int64_t rest = (k - i / kUnitK * kUnitK) / interleaved_format(T).block_elems;
  return static_cast<int>(rest < kBlocks ? rest : kBlocks);
}

/// The weights of input `i` of a group, in f32.
template <DType T>
__m512 weights_at(const std::byte* weights, int64_t k, int64_t i) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const std::byte* unit = weights + i / kUnitK * kFormat.unit_bytes;
  const int at = static_cast<int>(i % kUnitK);
  const __m512i q = codes_at<T>(unit + at / kSlabK * kFormat.slab_bytes, at % kSlabK / 4, at % 4);
  return weights_of<T>(sub_block_of<T>(unit, blocks_of_unit<T>(k, i), at), q);
}

/// Adds the outliers of a row, whose list begins at `head`.
template <DType T>
__m512 add_outliers(const std::byte* weights, int64_t k, const std::byte* head, __m512 acc) {
  const int count = load_int(head);
  for (int o = 0; o < count; ++o) {
    const std::byte* outlier = head + kOutlierHeadBytes + o * static_cast<int64_t>(sizeof(Outlier));
    acc = _mm512_fmadd_ps(weights_at<T>(weights, k, load_int(outlier)), _mm512_set1_ps(load_f32(outlier + 4)), acc);
  }
  return acc;
}

}  // namespace
}  // namespace headrace
