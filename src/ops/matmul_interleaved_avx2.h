#pragma once

#include <immintrin.h>

#include "ops/interleaved_layout.h"
#include "ops/matmul_kernels.h"
#include "quant/iq4_levels.h"

/// What the AVX2 products of interleaved weights share: codes of half a slab as bytes, the outliers of a row, the way
/// of a result to y. A group's 16 neurons are two halves of 8, a lane each.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace::avx2 {
namespace {

constexpr int kKRows = 8;              // k-rows of a slab
constexpr int kHalfBytes = 32;         // 8 neurons of a k-row
constexpr int64_t kAheadBytes = 2048;  // how far ahead weights are fetched

consteval bool is_signed_code(InterleavedFormat format) { return format.code_bits == 8 || format.code_is_level; }

inline int load_int(const void* p) {
  int value;
  __builtin_memcpy(&value, p, 4);
  return value;
}
inline __m256i load(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline __m256i broadcast_int(const void* p) { return _mm256_set1_epi32(load_int(p)); }
inline __m256 load_f16(const std::byte* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline __m256i and_shifted_left(__m256i v, int shift, int mask) {
  const __m256i moved = shift >= 0 ? _mm256_slli_epi16(v, shift) : _mm256_srli_epi16(v, -shift);
  return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(mask)));
}

inline void fetch(const std::byte* p, int bytes) {
  for (int i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p + kAheadBytes + i), _MM_HINT_T0);
}

/// The codes of a slab (signed codes as q), a vector of 8 neurons for each k-row. `slab` points to the half's first
/// byte.
template <DType T>
void expand_slab(const std::byte* slab, __m256i* w) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr int kBits = kFormat.code_bits;
  const auto vector = [slab](int i) { return load(slab + 64 * i); };
  if constexpr (kBits == 8) {
    for (int r = 0; r < kKRows; ++r) w[r] = _mm256_xor_si256(vector(r), _mm256_set1_epi8(-128));
  } else if constexpr (kBits == 2 || kBits == 3) {
    for (int r = 0; r < kKRows; ++r) w[r] = and_shifted_left(vector(r / 4), -2 * (r % 4), 3);
  } else {
    for (int r = 0; r < kKRows; ++r) w[r] = and_shifted_left(vector(r / 2), r % 2 * -4, 15);
  }
  if constexpr (kBits == 3 || kBits == 5) {
    constexpr int kTop = kBits - 1;
    const __m256i high = vector(kTop);  // after 2 or 4 vectors of low bits
    for (int r = 0; r < kKRows; ++r) w[r] = _mm256_or_si256(w[r], and_shifted_left(high, kTop - r, 1 << kTop));
  }
  if constexpr (kBits == 6) {
    for (int r = 0; r < kKRows; ++r) {
      w[r] = _mm256_or_si256(w[r], and_shifted_left(vector(4 + r / 4), 4 - 2 * (r % 4), 0x30));
    }
  }
  if constexpr (kFormat.code_is_level) {
    const __m256i table =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(&quant::kIq4Levels)));
    for (int r = 0; r < kKRows; ++r) w[r] = _mm256_shuffle_epi8(table, w[r]);
  }
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

/// Stores the 8 neurons from `first` on, as far as the matrix has them.
inline void store(const MatmulArgs& args, int64_t first, int64_t row, __m256 acc) {
  const int64_t rest = args.w.n - first;
  if (rest <= 0) return;
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(rest < 8 ? static_cast<int>(rest) : 8), lane);
  if (args.bias != nullptr) acc = _mm256_add_ps(acc, _mm256_maskload_ps(args.bias + first, mask));
  _mm256_maskstore_ps(args.y + row * args.y_stride + first, mask, acc);
}

/// `mask` bits of each lane of half a vector, of number `i` at `p`, from bit `shift` on.
inline __m256i bits_at(const std::byte* p, int i, int shift, int mask) {
  return _mm256_and_si256(_mm256_srl_epi32(load(p + 64 * i), _mm_cvtsi32_si128(shift)), _mm256_set1_epi32(mask));
}
inline __m256i sign_extend_byte(__m256i v) { return _mm256_srai_epi32(_mm256_slli_epi32(v, 24), 24); }

/// The q of byte `i` (0 to 3) of k-row `r` of half a slab.
template <DType T>
__m256i codes_at(const std::byte* slab, int r, int i) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr int kBits = kFormat.code_bits, kTop = kBits - 1;
  __m256i code;
  if constexpr (kBits == 8) {
    code = bits_at(slab, r, 8 * i, 255);
  } else if constexpr (kBits == 2 || kBits == 3) {
    code = bits_at(slab, r / 4, 8 * i + 2 * (r % 4), 3);
  } else {
    code = bits_at(slab, r / 2, 8 * i + 4 * (r % 2), 15);
  }
  if constexpr (kBits == 3 || kBits == 5) {
    code = _mm256_or_si256(code, _mm256_slli_epi32(bits_at(slab, kTop, 8 * i + r, 1), kTop));
  }
  if constexpr (kBits == 6) {
    code = _mm256_or_si256(code, _mm256_slli_epi32(bits_at(slab, 4 + r / 4, 8 * i + 2 * (r % 4), 3), 4));
  }
  if constexpr (kFormat.code_is_level) {
    const __m128i levels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&quant::kIq4Levels));
    return sign_extend_byte(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(levels), code));
  } else {
    return _mm256_sub_epi32(code, _mm256_set1_epi32(kFormat.code_offset));
  }
}

/// The weights of input `i` of half a group, in f32.
template <DType T>
__m256 weights_at(const std::byte* weights, int half, int64_t k, int64_t i) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr int kHalfF16Bytes = kGroupF16Bytes / 2;
  const std::byte* unit = weights + i / kUnitK * kFormat.unit_bytes;
  const int at = static_cast<int>(i % kUnitK), b = at / kSlabK;
  const std::byte* slab = unit + b * kFormat.slab_bytes + half * kHalfBytes;
  const __m256 q = _mm256_cvtepi32_ps(codes_at<T>(slab, at % kSlabK / 4, at % 4));
  if constexpr (kFormat.block_elems == kSlabK) {
    const int64_t rest = (k - i / kUnitK * kUnitK) / kSlabK, blocks = rest < 8 ? rest : 8;
    const std::byte* d_at = unit + blocks * kFormat.slab_bytes + b * kGroupF16Bytes + half * kHalfF16Bytes;
    const __m256 w = _mm256_mul_ps(load_f16(d_at), q);
    if constexpr (!kFormat.has_min) return w;
    return _mm256_add_ps(w, load_f16(d_at + blocks * kGroupF16Bytes));
  } else {
    constexpr int kVectors = kUnitK / kFormat.scale_elems / 4;
    const std::byte* slabs_end = unit + kUnitK / kSlabK * kFormat.slab_bytes;
    const std::byte* scales_at = slabs_end + half * kHalfBytes;
    const std::byte* d_at = slabs_end + kFormat.scale_bytes + half * kHalfF16Bytes;
    const int s = at / kFormat.scale_elems;
    __m256i scale = bits_at(scales_at, s / 4, 8 * (s % 4), kFormat.nibble_scales ? 15 : 255);
    if constexpr (kFormat.scale_signed) scale = sign_extend_byte(scale);
    const __m256 w = _mm256_mul_ps(_mm256_mul_ps(load_f16(d_at), _mm256_cvtepi32_ps(scale)), q);
    if constexpr (!kFormat.has_min) return w;
    const __m256i min = kFormat.nibble_scales ? bits_at(scales_at, s / 4, 8 * (s % 4) + 4, 15)
                                              : bits_at(scales_at, kVectors + s / 4, 8 * (s % 4), 255);
    return _mm256_sub_ps(w, _mm256_mul_ps(load_f16(d_at + kGroupF16Bytes), _mm256_cvtepi32_ps(min)));
  }
}

/// Adds the outliers of a row, whose list begins at `head`.
template <DType T>
void add_outliers(const std::byte* weights, int64_t k, const std::byte* head, __m256* acc) {
  const int count = load_int(head);
  for (int o = 0; o < count; ++o) {
    const std::byte* outlier = head + kOutlierHeadBytes + o * static_cast<int64_t>(sizeof(Outlier));
    const int i = load_int(outlier);
    const __m256 x = _mm256_set1_ps(load_f32(outlier + 4));
    for (int half = 0; half < 2; ++half) acc[half] = _mm256_fmadd_ps(weights_at<T>(weights, half, k, i), x, acc[half]);
  }
}

}  // namespace
}  // namespace headrace::avx2
