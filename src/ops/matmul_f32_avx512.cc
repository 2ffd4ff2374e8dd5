// Recipe f32-lanes16 (matmul.h): the sixteen chains of a product are the lanes of one vector.
#include <immintrin.h>

#include "ops/matmul_f32_vectors_avx2.h"

namespace headrace::avx512 {
namespace {

/// Sixteen weights widened to f32; `mask` names those that exist.
template <DType T>
__m512 load_weights(const std::byte* p, __mmask16 mask) {
  if constexpr (T == DType::kF32) {
    return _mm512_maskz_loadu_ps(mask, p);
  } else if constexpr (T == DType::kF16) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p));
  } else {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p)), 16));
  }
}

struct Vectors {
  static constexpr int kNeurons = 4;  // computed side by side: 4 x 4 rows are 16 vectors of sums
  static constexpr int kMostRows = 4;

  template <DType T, int neurons, int rows>
  static void add_products(const std::byte* w, int64_t w_stride, const float* x, int64_t x_stride, int64_t k,
                           float* lanes) {
    constexpr int64_t kBytes = weight_bytes<T>();
    __m512 acc[rows][neurons];
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < neurons; ++j) acc[r][j] = _mm512_loadu_ps(lanes + (r * kNeurons + j) * kLanes);
    }
    int64_t i = 0;
    for (; i + kLanes <= k; i += kLanes) {
      __m512 weights[neurons];
      for (int j = 0; j < neurons; ++j) {
        const std::byte* p = w + j * w_stride + i * kBytes;
        weights[j] = load_weights<T>(p, 0xffff);
        _mm_prefetch(reinterpret_cast<const char*>(p + kAheadBytes), _MM_HINT_T0);
      }
      for (int r = 0; r < rows; ++r) {
        const __m512 a = _mm512_loadu_ps(x + r * x_stride + i);
        for (int j = 0; j < neurons; ++j) acc[r][j] = _mm512_fmadd_ps(a, weights[j], acc[r][j]);
      }
    }
    if (i < k) {
      const auto mask = static_cast<__mmask16>((1 << (k - i)) - 1);  // the chains past it keep their sums
      for (int j = 0; j < neurons; ++j) {
        const __m512 weights = load_weights<T>(w + j * w_stride + i * kBytes, mask);
        for (int r = 0; r < rows; ++r) {
          const __m512 a = _mm512_maskz_loadu_ps(mask, x + r * x_stride + i);
          acc[r][j] = _mm512_mask3_fmadd_ps(a, weights, acc[r][j], mask);
        }
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < neurons; ++j) _mm512_storeu_ps(lanes + (r * kNeurons + j) * kLanes, acc[r][j]);
    }
  }
};

}  // namespace

template <DType T>
void matmul_plain(const MatmulArgs& args, RowRange groups) noexcept {
  run_plain<Vectors, T>(args, groups);
}
template void matmul_plain<DType::kF32>(const MatmulArgs&, RowRange) noexcept;
template void matmul_plain<DType::kF16>(const MatmulArgs&, RowRange) noexcept;
template void matmul_plain<DType::kBF16>(const MatmulArgs&, RowRange) noexcept;

void matmul_decoded(const MatmulArgs& args, RowRange groups) noexcept { run_decoded<Vectors>(args, groups); }

}  // namespace headrace::avx512
