#include "ops/rms_norm.h"
#include "ops/vector_math_avx512.h"

namespace headrace::avx512 {

/// Lanes beyond the row read as zero: fma(0, 0, c) leaves a chain as it is, for no sum of squares is -0.
static float sum_of_squares(const float* x, int64_t dim) noexcept {
  __m512 chains = _mm512_setzero_ps();
  for (int64_t i = 0; i < dim; i += 16) {
    const __m512 v = _mm512_maskz_loadu_ps(first_lanes(dim - i), x + i);
    chains = _mm512_fmadd_ps(v, v, chains);
  }
  return sum_lanes16(chains);
}

void rms_norm(const RmsNormArgs& a, RowRange rows) noexcept {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* x = a.x + r * a.dim;
    float* y = a.y + r * a.dim;
    const float mean = sum_of_squares(x, a.dim) / static_cast<float>(a.dim);
    const __m512 factor = _mm512_set1_ps(1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + a.eps))));
    for (int64_t i = 0; i < a.dim; i += 16) {
      const __mmask16 lanes = first_lanes(a.dim - i);
      const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), factor);
      _mm512_mask_storeu_ps(y + i, lanes, _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(lanes, a.w + i)));
    }
  }
}

}  // namespace headrace::avx512
