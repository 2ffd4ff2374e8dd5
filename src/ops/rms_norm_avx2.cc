#include "ops/rms_norm.h"
#include "ops/vector_math_avx2.h"

namespace headrace::avx2 {

/// Lanes beyond the row read as zero: fma(0, 0, c) leaves a chain as it is, for no sum of squares is -0.
static float sum_of_squares(const float* x, int64_t dim) noexcept {
  __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + 16 <= dim; i += 16) {
    const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
    low = _mm256_fmadd_ps(a, a, low);
    high = _mm256_fmadd_ps(b, b, high);
  }
  if (i < dim) {
    const __m256 a = _mm256_maskload_ps(x + i, first_lanes(dim - i));
    low = _mm256_fmadd_ps(a, a, low);
  }
  if (i + 8 < dim) {
    const __m256 b = _mm256_maskload_ps(x + i + 8, first_lanes(dim - i - 8));
    high = _mm256_fmadd_ps(b, b, high);
  }
  return sum_lanes16(low, high);
}

void rms_norm(const RmsNormArgs& a, RowRange rows) noexcept {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* x = a.x + r * a.dim;
    float* y = a.y + r * a.dim;
    const float mean = sum_of_squares(x, a.dim) / static_cast<float>(a.dim);
    const __m256 factor = _mm256_set1_ps(1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + a.eps))));
    int64_t i = 0;
    for (; i + 8 <= a.dim; i += 8) {
      const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), factor);
      _mm256_storeu_ps(y + i, _mm256_mul_ps(scaled, _mm256_loadu_ps(a.w + i)));
    }
    if (i < a.dim) {
      const __m256i tail = first_lanes(a.dim - i);
      const __m256 scaled = _mm256_mul_ps(_mm256_maskload_ps(x + i, tail), factor);
      _mm256_maskstore_ps(y + i, tail, _mm256_mul_ps(scaled, _mm256_maskload_ps(a.w + i, tail)));
    }
  }
}

}  // namespace headrace::avx2
