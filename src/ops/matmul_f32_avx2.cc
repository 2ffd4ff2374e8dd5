// Recipe f32-lanes16 (matmul.h): the sixteen chains of a product are the lanes of two vectors.
#include <immintrin.h>

#include "ops/matmul_f32_vectors_avx2.h"

namespace headrace::avx2 {
namespace {

constexpr int64_t kHalf = 8;

/// Eight weights widened to f32.
template <DType T>
__m256 load_weights(const std::byte* p) {
  if constexpr (T == DType::kF32) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(p));
  } else {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    if constexpr (T == DType::kF16) return _mm256_cvtph_ps(bits);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
}

struct Vectors {
  static constexpr int kNeurons = 2;  // computed side by side: 2 x 2 rows are 8 of the 16 registers
  static constexpr int kMostRows = 2;

  template <DType T, int neurons, int rows>
  static void add_products(const std::byte* w, int64_t w_stride, const float* x, int64_t x_stride, int64_t k,
                           float* lanes) {
    constexpr int64_t kBytes = weight_bytes<T>();
    __m256 acc[rows][neurons][2];
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < neurons; ++j) {
        for (int h = 0; h < 2; ++h) acc[r][j][h] = _mm256_loadu_ps(lanes + (r * kNeurons + j) * kLanes + h * kHalf);
      }
    }
    int64_t i = 0;
    for (; i + kLanes <= k; i += kLanes) {
      for (int j = 0; j < neurons; ++j) {
        _mm_prefetch(reinterpret_cast<const char*>(w + j * w_stride + i * kBytes + kAheadBytes), _MM_HINT_T0);
      }
      for (int h = 0; h < 2; ++h) {
        const int64_t at = i + h * kHalf;
        __m256 weights[neurons];
        for (int j = 0; j < neurons; ++j) weights[j] = load_weights<T>(w + j * w_stride + at * kBytes);
        for (int r = 0; r < rows; ++r) {
          const __m256 a = _mm256_loadu_ps(x + r * x_stride + at);
          for (int j = 0; j < neurons; ++j) acc[r][j][h] = _mm256_fmadd_ps(a, weights[j], acc[r][j][h]);
        }
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < neurons; ++j) {
        for (int h = 0; h < 2; ++h) _mm256_storeu_ps(lanes + (r * kNeurons + j) * kLanes + h * kHalf, acc[r][j][h]);
      }
    }
    const int64_t rest = k - i;  // goes on in the first chains; the others keep their sums
    for (int j = 0; rest > 0 && j < neurons; ++j) {
      alignas(32) std::byte tail[kLanes * 4] = {};
      __builtin_memcpy(tail, w + j * w_stride + i * kBytes, static_cast<size_t>(rest * kBytes));
      for (int h = 0; h < 2; ++h) {
        alignas(32) float weights[kHalf];
        _mm256_store_ps(weights, load_weights<T>(tail + h * kHalf * kBytes));
        for (int r = 0; r < rows; ++r) {
          float* sums = lanes + (r * kNeurons + j) * kLanes + h * kHalf;
          for (int64_t c = 0; c < kHalf && h * kHalf + c < rest; ++c) {
            sums[c] = __builtin_fmaf(x[r * x_stride + i + h * kHalf + c], weights[c], sums[c]);
          }
        }
      }
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

}  // namespace headrace::avx2
