// Products of interleaved weights with int8 activations by maddubs: recipes q8x32 and q8x256 (matmul.h), layout
// kInterleaved16 (interleaved_layout.h). A group's 16 neurons are two halves of 8, a lane each.
//
// maddubs multiplies unsigned by signed bytes and adds two products in 16 bits, saturating; nothing here may saturate.
// Activations lie in [-127, 127], so k-rows of unsigned codes can be added up in 16 bits as long as
//   2 bits  8 * 2 *  3 * 127 =  6096          5 bits  4 * 2 * 31 * 127 = 31496
//   3 bits  8 * 2 *  7 * 127 = 14224          6 bits  2 * 2 * 63 * 127 = 32004
//   4 bits  8 * 2 * 15 * 127 = 30480          all at most 32767
// and q = code - offset is made good by the sums of the activations. Q8_0 and the IQ4 levels are signed and take
// |q| * (x with the sign of q) instead: 2 * 128 * 127 = 32512 for one k-row (|-128| is 128 as an unsigned byte).
// Then one madd adds lanes of 16 bits in pairs into 32, with the sub-block's scale as its factor.
#include <immintrin.h>

#include "ops/matmul_interleaved_avx2.h"
#include "ops/matmul_row_tiles.h"

namespace headrace::avx2 {
namespace {

/// k-rows whose products fit into 16 bits.
consteval int rows_in_16_bits(InterleavedFormat format) {
  if (is_signed_code(format)) return 1;
  return format.code_bits <= 4 ? 8 : format.code_bits == 5 ? 4 : 2;
}

/// sum + scale * (`count` k-rows times the activations). scale: a pair of equal 16-bit numbers in each lane.
template <DType T, int count>
__m256i add_scaled_dot(__m256i sum, const __m256i* w, const int8_t* x, __m256i scale) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr int kChunk = rows_in_16_bits(kFormat) < count ? rows_in_16_bits(kFormat) : count;
  for (int first = 0; first < count; first += kChunk) {
    __m256i words = _mm256_setzero_si256();
    for (int r = first; r < first + kChunk; ++r) {
      const __m256i a = broadcast_int(x + 4 * r);
      if constexpr (is_signed_code(kFormat)) {
        words = _mm256_maddubs_epi16(_mm256_abs_epi8(w[r]), _mm256_sign_epi8(a, w[r]));
      } else {
        words = _mm256_add_epi16(words, _mm256_maddubs_epi16(w[r], a));
      }
    }
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(words, scale));
  }
  return sum;
}

/// The records of a tile's rows, and where scales and sums begin in each.
template <int rows>
struct Acts {
  const std::byte* row[rows];
  int64_t scale_at, sum_at, outliers_at;
};
const int8_t* codes_of(const std::byte* record, int64_t i) { return reinterpret_cast<const int8_t*>(record) + i; }

template <DType T, int rows>
void add_unit32(const std::byte* unit, int blocks, const Acts<rows>& x, int64_t first_block, __m256 (*acc)[2]) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr int kOffset = is_signed_code(kFormat) ? 0 : kFormat.code_offset;
  const std::byte* d_at = unit + blocks * kFormat.slab_bytes;
  const std::byte* m_at = d_at + blocks * kGroupF16Bytes;
  for (int b = 0; b < blocks; ++b) {
    const int64_t block = first_block + b;
    const int64_t scale_at = x.scale_at + 4 * block, sum_at = x.sum_at + 2 * block;
    fetch(unit + b * kFormat.unit_step_bytes, kFormat.unit_step_bytes);
    for (int half = 0; half < 2; ++half) {
      const int f16_at = b * kGroupF16Bytes + half * (kGroupF16Bytes / 2);
      __m256i w[kKRows];
      expand_slab<T>(unit + b * kFormat.slab_bytes + half * kHalfBytes, w);
      const __m256 d = load_f16(d_at + f16_at);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        __m256i sum = _mm256_setzero_si256();
        if constexpr (kOffset != 0) sum = _mm256_set1_epi32(-kOffset * load_i16(x.row[r] + sum_at));
        sum = add_scaled_dot<T, kKRows>(sum, w, codes_of(x.row[r], kSlabK * block), _mm256_set1_epi16(1));
        const float a = load_f32(x.row[r] + scale_at);
        __m256 result = _mm256_fmadd_ps(_mm256_mul_ps(d, _mm256_set1_ps(a)), _mm256_cvtepi32_ps(sum), acc[r][half]);
        if constexpr (kFormat.has_min) {
          const float as = a * static_cast<float>(load_i16(x.row[r] + sum_at));
          result = _mm256_fmadd_ps(load_f16(m_at + f16_at), _mm256_set1_ps(as), result);
        }
        acc[r][half] = result;
      }
    }
  }
}

/// Bytes `i` and `j` of each 32-bit lane as a pair of 16-bit numbers.
template <bool is_signed>
__m256i scale_pair(__m256i v, int i, int j) {
  const __m128i lanes = _mm_setr_epi32(0, 4, 8, 12);
  if constexpr (is_signed) {  // into the high bytes, then down with the sign
    const __m128i pick = _mm_set1_epi32(0x00800080 | i << 8 | j << 24);
    const __m128i places = _mm_or_si128(_mm_slli_epi32(lanes, 8), _mm_slli_epi32(lanes, 24));
    return _mm256_srai_epi16(_mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(_mm_add_epi8(pick, places))), 8);
  } else {
    const __m128i pick = _mm_set1_epi32(static_cast<int>(0x80008000u) | i | j << 16);
    const __m128i places = _mm_or_si128(lanes, _mm_slli_epi32(lanes, 16));
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(_mm_add_epi8(pick, places)));
  }
}

/// One half of a super-block.
template <DType T, int rows>
void add_half_unit256(const std::byte* unit, int half, const Acts<rows>& x, int64_t block, __m256 (*acc)[2]) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr int kSlabs = kUnitK / kSlabK, kN = kFormat.scale_elems, kVectors = kUnitK / kN / 4;
  constexpr bool kSigned = kFormat.scale_signed;
  constexpr int kOffset = is_signed_code(kFormat) ? 0 : kFormat.code_offset;
  const std::byte* scales_at = unit + kSlabs * kFormat.slab_bytes + half * kHalfBytes;
  const std::byte* d_at = unit + kSlabs * kFormat.slab_bytes + kFormat.scale_bytes + half * (kGroupF16Bytes / 2);
  constexpr int kSlabsOfVector = kSlabs / kVectors, kFetched = kFormat.unit_bytes / (2 * kSlabs);
  __m256i isum[rows], msum[rows];
  for (int r = 0; r < rows; ++r) isum[r] = msum[r] = _mm256_setzero_si256();
  for (int v = 0; v < kVectors; ++v) {
    __m256i scales = load(scales_at + 64 * v), weights = scales;  // weights: of the sums of x
    if constexpr (kFormat.nibble_scales) {
      weights = and_shifted_left(scales, -4, 15);
      scales = and_shifted_left(scales, 0, 15);
    } else if constexpr (kFormat.has_min) {
      weights = load(scales_at + 64 * (kVectors + v));
    }
#pragma GCC unroll 4
    for (int i = 0; i < kSlabsOfVector; ++i) {
      const int s = v * kSlabsOfVector + i;
      const int64_t x_at = kUnitK * block + kSlabK * s, sum_at = x.sum_at + 32 * block + 4 * s;
      fetch(unit + (half * kSlabs + s) * kFetched, kFetched);
      __m256i w[kKRows];
      expand_slab<T>(unit + s * kFormat.slab_bytes + half * kHalfBytes, w);
      // The slab's scale or two, and what multiplies the sums of its first and last 16 activations.
      const int first = kN == 16 ? 2 * i : i, second = kN == 16 ? 2 * i + 1 : i;
      const __m256i first_scale = scale_pair<kSigned>(scales, first, first);
      const __m256i second_scale = scale_pair<kSigned>(scales, second, second);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const int8_t* q = codes_of(x.row[r], x_at);
        if constexpr (kN == kSlabK) {
          isum[r] = add_scaled_dot<T, kKRows>(isum[r], w, q, first_scale);
        } else {
          isum[r] = add_scaled_dot<T, 4>(isum[r], w, q, first_scale);
          isum[r] = add_scaled_dot<T, 4>(isum[r], w + 4, q + 16, second_scale);
        }
        if constexpr (kFormat.has_min || kOffset != 0) {
          const __m256i pair = scale_pair<kSigned>(weights, first, second);
          msum[r] = _mm256_add_epi32(msum[r], _mm256_madd_epi16(pair, broadcast_int(x.row[r] + sum_at)));
        }
      }
    }
  }
  const __m256 d = load_f16(d_at);
  for (int r = 0; r < rows; ++r) {
    const __m256 a = _mm256_set1_ps(load_f32(x.row[r] + x.scale_at + 4 * block));
    __m256i sum = isum[r];
    if constexpr (kOffset != 0) sum = _mm256_sub_epi32(sum, _mm256_mullo_epi32(msum[r], _mm256_set1_epi32(kOffset)));
    __m256 result = _mm256_fmadd_ps(_mm256_mul_ps(d, a), _mm256_cvtepi32_ps(sum), acc[r][half]);
    if constexpr (kFormat.has_min) {
      const __m256 dmin = load_f16(d_at + kGroupF16Bytes);
      result = _mm256_fnmadd_ps(_mm256_mul_ps(dmin, a), _mm256_cvtepi32_ps(msum[r]), result);
    }
    acc[r][half] = result;
  }
}

template <DType T>
struct Kernel {
  static constexpr int kMaxRows = 4;
  template <int rows>
  static void tile(const MatmulArgs& args, int64_t group, int64_t first) {
    constexpr InterleavedFormat kFormat = interleaved_format(T);
    const int64_t k = args.w.k;
    const int64_t row_bytes = act_row_bytes(args.x.form, k);
    Acts<rows> x;
    x.scale_at = act_scale_offset(args.x.form, k);
    x.sum_at = act_sum_offset(args.x.form, k);
    x.outliers_at = act_outlier_offset(args.x.form, k);
    __m256 acc[rows][2];
    for (int r = 0; r < rows; ++r) {
      x.row[r] = args.x.data + (first + r) * row_bytes;
      acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    }
    const std::byte* weights = args.w.data + group * (k / kFormat.block_elems * kFormat.unit_step_bytes);
    const std::byte* unit = weights;
    for (int64_t done = 0; done < k; done += kUnitK, unit += kFormat.unit_bytes) {
      if constexpr (kFormat.block_elems == kSlabK) {
        const int64_t rest = (k - done) / kSlabK;
        add_unit32<T, rows>(unit, static_cast<int>(rest < 8 ? rest : 8), x, done / kSlabK, acc);
      } else {
        for (int half = 0; half < 2; ++half) add_half_unit256<T, rows>(unit, half, x, done / kUnitK, acc);
      }
    }
    for (int r = 0; r < rows; ++r) {
      add_outliers<T>(weights, k, x.row[r] + x.outliers_at, acc[r]);
      for (int half = 0; half < 2; ++half) store(args, group * kNeuronGroup + half * 8, first + r, acc[r][half]);
    }
  }
};

}  // namespace

template <DType T>
void matmul_interleaved(const MatmulArgs& args, RowRange groups) noexcept {
  run_tiles<Kernel<T>>(args, act_outlier_offset(args.x.form, args.x.k), groups);
}
template void matmul_interleaved<DType::kQ4_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ4_1>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ5_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ5_1>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ8_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kIQ4_NL>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ2_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ3_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ4_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ5_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ6_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kIQ4_XS>(const MatmulArgs&, RowRange) noexcept;

}  // namespace headrace::avx2
