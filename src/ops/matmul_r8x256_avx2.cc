// Products of recipe r8x256 (matmul.h) by AVX2; a group's 16 neurons are two halves of 8, a lane each.
//
// maddubs would have to be kept from saturating (2 * 127 * 127 fits, 2 * 255 * 127 does not), so units are expanded to
// words, even and odd k apart as they come from the codes, and madd multiplies those: no fewer instructions a product,
// but none to put bytes together. Activations follow as words in the same order.
#include <immintrin.h>

#include "ops/matmul_interleaved_avx2.h"
#include "ops/matmul_r8x256_loops.h"

namespace headrace::avx2 {
namespace {

constexpr int kUnitSlabs = kUnitK / kSlabK;
constexpr int kRowBytes = 128;  // of an expanded k-row: two halves, each of even and odd words

/// The integer of each lane of v, its low 16 bits in both halves of the lane.
__m256i word_pairs(__m256 v) {
  const __m128i both = _mm_setr_epi32(0x01000100, 0x05040504, 0x09080908, 0x0d0c0d0c);
  return _mm256_shuffle_epi8(_mm256_cvtps_epi32(v), _mm256_broadcastsi128_si256(both));
}

/// S and B of a sub-block, as pairs of words.
struct StepBase {
  __m256i step, base;
};

/// `rows` vectors of codes of half a group to words, kRowBytes apart.
template <DType T, int rows>
void requant_rows(const __m256i* codes, StepBase sub_block, std::byte* out) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    __m256i even, odd;
    if constexpr (is_high_product(kFormat)) {
      even = _mm256_mulhrs_epi16(_mm256_srai_epi16(_mm256_slli_epi16(codes[r], 8), 8), sub_block.step);
      odd = _mm256_mulhrs_epi16(_mm256_srai_epi16(codes[r], 8), sub_block.step);
    } else {
      even = _mm256_mullo_epi16(_mm256_and_si256(codes[r], _mm256_set1_epi16(0xff)), sub_block.step);
      odd = _mm256_mullo_epi16(_mm256_srli_epi16(codes[r], 8), sub_block.step);
      even = _mm256_srai_epi16(_mm256_add_epi16(even, sub_block.base), 8);
      odd = _mm256_srai_epi16(_mm256_add_epi16(odd, sub_block.base), 8);
    }
    _mm256_store_si256(reinterpret_cast<__m256i*>(out + r * kRowBytes), even);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out + r * kRowBytes + 32), odd);
  }
}

/// B of a sub-block in formats without minima, from its S.
template <DType T>
__m256i base_of_step(__m256i step) {
  const __m256i offset = _mm256_set1_epi16(static_cast<int16_t>(interleaved_format(T).code_offset));
  return _mm256_sub_epi16(_mm256_set1_epi16(128), _mm256_mullo_epi16(step, offset));
}
/// B of a sub-block, its base times inv given.
__m256i base_of_min(__m256 base) { return _mm256_add_epi16(_mm256_set1_epi16(128), word_pairs(base)); }

/// Byte `i` of each lane, a signed or an unsigned number.
template <bool is_signed>
__m256 number_of_lane(__m256i v, int i) {
  if constexpr (is_signed) {
    return _mm256_cvtepi32_ps(sign_extend_byte(_mm256_srli_epi32(v, 8 * i)));
  } else {
    return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(v, 8 * i), _mm256_set1_epi32(255)));
  }
}

/// Half of a unit to words. r_at: its 8 scales.
template <DType T>
void requant_half_unit(const std::byte* unit, int slabs, int half, const std::byte* r_at, std::byte* out) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr bool kHasBase = !is_high_product(kFormat);
  constexpr int kHalfF16Bytes = kGroupF16Bytes / 2;
  const __m256 r = _mm256_loadu_ps(reinterpret_cast<const float*>(r_at));
  const __m256 inv = _mm256_div_ps(_mm256_set1_ps(kHasBase ? 256.0f : 32768.0f), r);
  if constexpr (kFormat.block_elems == kSlabK) {
    const std::byte* d_at = unit + slabs * kFormat.slab_bytes + half * kHalfF16Bytes;
    const std::byte* m_at = d_at + slabs * kGroupF16Bytes;
    for (int s = 0; s < slabs; ++s) {
      fetch(unit + s * kFormat.unit_step_bytes, kFormat.unit_step_bytes);
      __m256i codes[kKRows];
      expand_slab<T>(unit + s * kFormat.slab_bytes + half * kHalfBytes, codes);
      StepBase sub_block{};
      sub_block.step = word_pairs(_mm256_mul_ps(load_f16(d_at + s * kGroupF16Bytes), inv));
      if constexpr (kFormat.has_min) {
        sub_block.base = base_of_min(_mm256_mul_ps(load_f16(m_at + s * kGroupF16Bytes), inv));
      } else if constexpr (kHasBase) {
        sub_block.base = base_of_step<T>(sub_block.step);
      }
      requant_rows<T, kKRows>(codes, sub_block, out + s * kKRows * kRowBytes);
    }
  } else {
    constexpr int kSubBlocks = kSlabK / kFormat.scale_elems;  // of a slab
    constexpr int kVectors = kUnitSlabs * kSubBlocks / 4, kSlabsOfVector = kUnitSlabs / kVectors;
    constexpr int kSubBlockRows = kKRows / kSubBlocks;
    const std::byte* scales_at = unit + kUnitSlabs * kFormat.slab_bytes + half * kHalfBytes;
    const std::byte* d_at = unit + kUnitSlabs * kFormat.slab_bytes + kFormat.scale_bytes + half * kHalfF16Bytes;
    const __m256 d = _mm256_mul_ps(load_f16(d_at), inv);
    const __m256 dmin = _mm256_mul_ps(kFormat.has_min ? load_f16(d_at + kGroupF16Bytes) : inv, inv);
    const __m256 minus_dmin = _mm256_sub_ps(_mm256_setzero_ps(), dmin);
    for (int v = 0; v < kVectors; ++v) {
      __m256i scales = load(scales_at + 64 * v), mins = scales;
      if constexpr (kFormat.nibble_scales) {
        mins = and_shifted_left(scales, -4, 15);
        scales = and_shifted_left(scales, 0, 15);
      } else if constexpr (kFormat.has_min) {
        mins = load(scales_at + 64 * (kVectors + v));
      }
#pragma GCC unroll 4
      for (int i = 0; i < kSlabsOfVector; ++i) {
        const int s = v * kSlabsOfVector + i;
        fetch(unit + s * (kFormat.unit_bytes / kUnitSlabs), kFormat.unit_bytes / kUnitSlabs);
        __m256i codes[kKRows];
        expand_slab<T>(unit + s * kFormat.slab_bytes + half * kHalfBytes, codes);
#pragma GCC unroll 2
        for (int part = 0; part < kSubBlocks; ++part) {
          const int at = kSubBlocks * i + part;
          StepBase sub_block{};
          sub_block.step = word_pairs(_mm256_mul_ps(number_of_lane<kFormat.scale_signed>(scales, at), d));
          if constexpr (kFormat.has_min) {
            sub_block.base = base_of_min(_mm256_mul_ps(number_of_lane<false>(mins, at), minus_dmin));
          } else if constexpr (kHasBase) {
            sub_block.base = base_of_step<T>(sub_block.step);
          }
          requant_rows<T, kSubBlockRows>(codes + kSubBlockRows * part, sub_block,
                                         out + (s * kKRows + kSubBlockRows * part) * kRowBytes);
        }
      }
    }
  }
}

template <DType T>
class Kernel {
 public:
  static constexpr InterleavedFormat kFormat = interleaved_format(T);
  static constexpr int kMaxRows = 4;

  void expand(const std::byte* unit, int slabs, const std::byte* r) {
    for (int half = 0; half < 2; ++half) requant_half_unit<T>(unit, slabs, half, r + 32 * half, words_ + 64 * half);
    r_ = r;
  }

  template <int rows>
  void add(const UnitPlace& place, const std::byte* x, float (*acc)[kLanes]) const {
    alignas(32) int16_t x_words[rows][kUnitK];
    const __m128i even_first = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    for (int r = 0; r < rows; ++r) {
      const std::byte* q = x + r * place.row_bytes + place.q_at;
      for (int i = 0; i < place.slabs * kSlabK; i += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q + i));
        const __m256i words = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(bytes, even_first));
        _mm256_store_si256(reinterpret_cast<__m256i*>(x_words[r] + i), words);
      }
    }
    __m256i sums[rows][2];
    for (int r = 0; r < rows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
    for (int i = 0; i < place.slabs * kKRows; ++i) {
      const std::byte* w = words_ + i * kRowBytes;
      const __m256i even[2]{load(w), load(w + 64)}, odd[2]{load(w + 32), load(w + 96)};
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const __m256i even_x = broadcast_int(x_words[r] + 4 * i), odd_x = broadcast_int(x_words[r] + 4 * i + 2);
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          sums[r][half] = _mm256_add_epi32(sums[r][half], _mm256_madd_epi16(even[half], even_x));
          sums[r][half] = _mm256_add_epi32(sums[r][half], _mm256_madd_epi16(odd[half], odd_x));
        }
      }
    }
    for (int r = 0; r < rows; ++r) {
      const __m256 a = _mm256_set1_ps(load_f32(x + r * place.row_bytes + place.scale_at));
      for (int half = 0; half < 2; ++half) {
        float* at = acc[r] + 8 * half;
        const __m256 scale = _mm256_mul_ps(_mm256_loadu_ps(reinterpret_cast<const float*>(r_ + 32 * half)), a);
        _mm256_store_ps(at, _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sums[r][half]), _mm256_load_ps(at)));
      }
    }
  }

  static void store(const MatmulArgs& args, int64_t group, int64_t row, const std::byte* weights,
                    const std::byte* outliers, const float* acc) {
    __m256 halves[2]{_mm256_load_ps(acc), _mm256_load_ps(acc + 8)};
    add_outliers<T>(weights, args.x.k, outliers, halves);
    for (int half = 0; half < 2; ++half) {
      headrace::avx2::store(args, group * kNeuronGroup + half * 8, row, halves[half]);
    }
  }

 private:
  alignas(64) std::byte words_[kUnitSlabs * kKRows * kRowBytes];
  const std::byte* r_;
};

}  // namespace

template <DType T>
void matmul_r8x256(const MatmulArgs& args, RowRange groups) noexcept {
  run_requant<Kernel<T>>(args, groups);
}
template void matmul_r8x256<DType::kQ4_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ4_1>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ5_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ5_1>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ8_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kIQ4_NL>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ2_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ3_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ4_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ5_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ6_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kIQ4_XS>(const MatmulArgs&, RowRange) noexcept;

}  // namespace headrace::avx2
