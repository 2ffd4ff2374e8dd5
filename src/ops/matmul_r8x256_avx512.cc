// Products of recipe r8x256 (matmul.h) by vpdpbusd; a lane of every vector is one of the group's 16 neurons.
//
// vpdpbusd multiplies unsigned by signed bytes, so units are expanded to w8 + 128, and
//   sum w8 * x = sum (w8 + 128) * x - 128 * sum x,   the sums of x coming with the activations.
// Largest values: 255 * 127 * 256 < 2^23, so that the sum is exact in f32 too.
#include "ops/matmul_r8x256_avx512.h"

#include <immintrin.h>

#include "ops/matmul_r8x256_loops.h"

namespace headrace::avx512 {
namespace {

template <DType T>
class Kernel {
 public:
  static constexpr InterleavedFormat kFormat = interleaved_format(T);
  static constexpr int kMaxRows = 8;

  void expand(const std::byte* unit, int slabs, const std::byte* r) {
    requant_unit<T, true>(unit, slabs, r, w8_);
    r_ = _mm512_loadu_ps(r);
  }

  template <int rows>
  void add(const UnitPlace& place, const std::byte* x, float (*acc)[kLanes]) const {
    constexpr int kChains = rows == 1 ? 4 : rows == 2 ? 2 : 1;  // enough to fill the time that an addition takes
    __m512i sums[rows][kChains];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < kChains; ++c) sums[r][c] = _mm512_setzero_si512();
    }
    const __m512i offset = _mm512_set1_epi16(-128);
    for (int s = 0; s < place.slabs; ++s) {
      const std::byte *w = w8_ + s * kSlabBytes, *q = x + place.q_at + s * kSlabK;
      const std::byte* sum_of_x = x + place.sum_at + s * 4;
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        __m512i& sum = sums[r][kChains - 1];
        sum = _mm512_dpwssd_epi32(sum, offset, broadcast_int(sum_of_x + r * place.row_bytes));
      }
#pragma GCC unroll 8
      for (int i = 0; i < kKRows; ++i) {
        const __m512i w8 = _mm512_load_si512(w + 64 * i);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          __m512i& sum = sums[r][i % kChains];
          sum = _mm512_dpbusd_epi32(sum, w8, broadcast_int(q + r * place.row_bytes + 4 * i));
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      for (int c = 1; c < kChains; ++c) sums[r][0] = _mm512_add_epi32(sums[r][0], sums[r][c]);
      const __m512 a = _mm512_set1_ps(load_f32(x + r * place.row_bytes + place.scale_at));
      const __m512 sum = _mm512_cvtepi32_ps(sums[r][0]);
      _mm512_store_ps(acc[r], _mm512_fmadd_ps(_mm512_mul_ps(r_, a), sum, _mm512_load_ps(acc[r])));
    }
  }

  static void store(const MatmulArgs& args, int64_t group, int64_t row, const std::byte* weights,
                    const std::byte* outliers, const float* acc) {
    headrace::store(args, group, row, add_outliers<T>(weights, args.x.k, outliers, _mm512_load_ps(acc)));
  }

 private:
  alignas(64) std::byte w8_[kUnitSlabs * kSlabBytes];
  __m512 r_;
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

}  // namespace headrace::avx512
