// Products of interleaved weights with int8 activations by vpdpbusd: recipes q8x32 and q8x256 (matmul.h), layout
// kInterleaved16 (interleaved_layout.h). A lane of every vector below is one of the group's 16 neurons.
//
// vpdpbusd multiplies unsigned by signed bytes, so codes stay unsigned: with q = code - offset,
//   sum q * x = sum code * x - offset * sum x,   and the sums of x come with the activations. All of it is exact.
// Largest values: |isum| of Q6_K before the offset 63 * 127 * 256 * 128 < 2^28.
#include <immintrin.h>

#include "ops/interleaved_layout.h"
#include "ops/matmul_interleaved_avx512.h"
#include "ops/matmul_kernels.h"
#include "ops/matmul_row_tiles.h"

namespace headrace::avx512 {
namespace {

/// sum + codes of k-rows [first, first + count) times the activations of the slab.
template <int count>
__m512i dot(__m512i sum, const __m512i* w, const int8_t* x) {
  for (int r = 0; r < count; ++r) sum = _mm512_dpbusd_epi32(sum, w[r], broadcast_int(x + 4 * r));
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
void add_unit32(const std::byte* unit, int blocks, const Acts<rows>& x, int64_t first_block, __m512* acc) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const std::byte* d_at = unit + blocks * kFormat.slab_bytes;
  const std::byte* m_at = d_at + blocks * kGroupF16Bytes;
  for (int b = 0; b < blocks; ++b) {
    const int64_t block = first_block + b;
    const int64_t scale_at = x.scale_at + 4 * block, sum_at = x.sum_at + 2 * block, pair_at = sum_at - block % 2 * 2;
    fetch(unit + b * kFormat.unit_step_bytes, kFormat.unit_step_bytes);
    __m512i w[kKRows];
    expand_slab<T>(unit + b * kFormat.slab_bytes, w);
    const __m512 d = load_f16(d_at + b * kGroupF16Bytes);
    // Sums of x come as pairs of words: this block's is the low one of an even block, the high one of an odd one.
    const __m512i offset =
        _mm512_set1_epi32(block % 2 == 0 ? -offset_of(kFormat) & 0xffff : -offset_of(kFormat) * 65536);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      __m512i sum = _mm512_setzero_si512();
      if constexpr (offset_of(kFormat) != 0) {
        sum = _mm512_dpwssd_epi32(sum, offset, broadcast_int(x.row[r] + pair_at));
      }
      sum = dot<kKRows>(sum, w, codes_of(x.row[r], kSlabK * block));
      const float a = load_f32(x.row[r] + scale_at);
      acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(a)), _mm512_cvtepi32_ps(sum), acc[r]);
      if constexpr (kFormat.has_min) {
        const __m512 as = _mm512_set1_ps(a * static_cast<float>(load_i16(x.row[r] + sum_at)));
        acc[r] = _mm512_fmadd_ps(load_f16(m_at + b * kGroupF16Bytes), as, acc[r]);
      }
    }
  }
}

template <DType T, int rows>
void add_unit256(const std::byte* unit, const Acts<rows>& x, int64_t block, __m512* acc) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr int kSlabs = kUnitK / kSlabK, kN = kFormat.scale_elems, kVectors = kUnitK / kN / 4;
  constexpr int kSlabsOfVector = kSlabs / kVectors;
  constexpr bool kSigned = kFormat.scale_signed;
  const std::byte* scales_at = unit + kSlabs * kFormat.slab_bytes;
  const std::byte* d_at = scales_at + kFormat.scale_bytes;
  __m512i isum[rows], msum[rows];
  for (int r = 0; r < rows; ++r) isum[r] = msum[r] = _mm512_setzero_si512();
  for (int v = 0; v < kVectors; ++v) {
    __m512i scales = _mm512_loadu_si512(scales_at + 64 * v), weights = scales;  // weights: of the sums of x
    if constexpr (kFormat.nibble_scales) {
      weights = and_shifted_left(scales, -4, 15);
      scales = and_shifted_left(scales, 0, 15);
    } else if constexpr (kFormat.has_min) {
      weights = _mm512_loadu_si512(scales_at + 64 * (kVectors + v));
    }
#pragma GCC unroll 4
    for (int i = 0; i < kSlabsOfVector; ++i) {
      const int s = v * kSlabsOfVector + i;
      const int64_t x_at = kUnitK * block + kSlabK * s, sum_at = x.sum_at + 32 * block + 4 * s;
      fetch(unit + s * (kFormat.unit_bytes / kSlabs), kFormat.unit_bytes / kSlabs);
      __m512i w[kKRows];
      expand_slab<T>(unit + s * kFormat.slab_bytes, w);
      // The slab's scale or two, and what multiplies the sums of its first and last 16 activations.
      const int first = kN == 16 ? 2 * i : i, second = kN == 16 ? 2 * i + 1 : i;
      const __m512i first_scale = byte_of_lane<kSigned>(scales, first),
                    second_scale = byte_of_lane<kSigned>(scales, second);
      const __m512i pair = byte_pair_of_lane<kSigned>(weights, first, second);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const int8_t* q = codes_of(x.row[r], x_at);
        msum[r] = _mm512_dpwssd_epi32(msum[r], pair, broadcast_int(x.row[r] + sum_at));
        if constexpr (kN == kSlabK) {
          const __m512i sum = dot<kKRows>(_mm512_setzero_si512(), w, q);
          isum[r] = _mm512_add_epi32(isum[r], _mm512_mullo_epi32(sum, first_scale));
        } else {
          const __m512i low = _mm512_mullo_epi32(dot<4>(_mm512_setzero_si512(), w, q), first_scale);
          const __m512i high = _mm512_mullo_epi32(dot<4>(_mm512_setzero_si512(), w + 4, q + 16), second_scale);
          isum[r] = _mm512_add_epi32(isum[r], _mm512_add_epi32(low, high));
        }
      }
    }
  }
  const __m512 d = load_f16(d_at);
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    const __m512 a = _mm512_set1_ps(load_f32(x.row[r] + x.scale_at + 4 * block));
    if constexpr (kFormat.has_min) {
      const __m512 dmin = load_f16(d_at + kGroupF16Bytes);
      acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(d, a), _mm512_cvtepi32_ps(isum[r]), acc[r]);
      acc[r] = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, a), _mm512_cvtepi32_ps(msum[r]), acc[r]);
    } else {
      const __m512i of_offset = _mm512_mullo_epi32(msum[r], _mm512_set1_epi32(offset_of(kFormat)));
      const __m512i sum = _mm512_sub_epi32(isum[r], of_offset);
      acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(d, a), _mm512_cvtepi32_ps(sum), acc[r]);
    }
  }
}

template <DType T>
struct Kernel {
  static constexpr int kMaxRows = 8;
  template <int rows>
  static void tile(const MatmulArgs& args, int64_t group, int64_t first) {
    constexpr InterleavedFormat kFormat = interleaved_format(T);
    const int64_t k = args.w.k;
    const int64_t row_bytes = act_row_bytes(args.x.form, k);
    Acts<rows> x;
    x.scale_at = act_scale_offset(args.x.form, k);
    x.sum_at = act_sum_offset(args.x.form, k);
    x.outliers_at = act_outlier_offset(args.x.form, k);
    __m512 acc[rows];
    for (int r = 0; r < rows; ++r) {
      x.row[r] = args.x.data + (first + r) * row_bytes;
      acc[r] = _mm512_setzero_ps();
    }
    const std::byte* weights = args.w.data + group * (k / kFormat.block_elems * kFormat.unit_step_bytes);
    const std::byte* unit = weights;
    for (int64_t done = 0; done < k; done += kUnitK, unit += kFormat.unit_bytes) {
      if constexpr (kFormat.block_elems == kSlabK) {
        const int64_t rest = (k - done) / kSlabK;
        add_unit32<T, rows>(unit, static_cast<int>(rest < 8 ? rest : 8), x, done / kSlabK, acc);
      } else {
        add_unit256<T, rows>(unit, x, done / kUnitK, acc);
      }
    }
    for (int r = 0; r < rows; ++r) {
      acc[r] = add_outliers<T>(weights, k, x.row[r] + x.outliers_at, acc[r]);
      store(args, group, first + r, acc[r]);
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

}  // namespace headrace::avx512
