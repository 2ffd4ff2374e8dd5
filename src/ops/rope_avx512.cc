#include "ops/rope.h"
#include "ops/vector_math_avx512.h"

namespace headrace::avx512 {

/// Pairs x[i], x[i + half].
static void rotate_halves(float* x, const float* cos_of, const float* sin_of, int64_t half) noexcept {
  for (int64_t i = 0; i < half; i += 16) {
    const __mmask16 lanes = first_lanes(half - i);
    const __m512 c = _mm512_maskz_loadu_ps(lanes, cos_of + i), s = _mm512_maskz_loadu_ps(lanes, sin_of + i);
    const __m512 a = _mm512_maskz_loadu_ps(lanes, x + i), b = _mm512_maskz_loadu_ps(lanes, x + half + i);
    _mm512_mask_storeu_ps(x + i, lanes, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
    _mm512_mask_storeu_ps(x + half + i, lanes, _mm512_fmadd_ps(b, c, _mm512_mul_ps(a, s)));
  }
}

/// Pairs x[2 i], x[2 i + 1], eight in a vector: fmaddsub takes the product off in even lanes and adds it in odd ones.
static void rotate_neighbours(float* x, const float* cos_of, const float* sin_of, int64_t half) noexcept {
  const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  for (int64_t i = 0; i < half; i += 8) {
    const int64_t pairs = half - i < 8 ? half - i : 8;
    const __mmask16 angles = first_lanes(pairs), lanes = first_lanes(2 * pairs);
    const __m512 c = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(angles, cos_of + i));
    const __m512 s = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(angles, sin_of + i));
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + 2 * i);
    const __m512 swapped = _mm512_permute_ps(v, 0b10110001);
    _mm512_mask_storeu_ps(x + 2 * i, lanes, _mm512_fmaddsub_ps(v, c, _mm512_mul_ps(swapped, s)));
  }
}

void rope(const RopeArgs& a, RowRange rows) noexcept {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* cos_of = a.cos_sin + r * 2 * a.half;
    const float* sin_of = cos_of + a.half;
    for (int64_t h = 0; h < a.heads; ++h) {
      float* x = a.x + (r * a.heads + h) * a.head_dim;
      if (a.layout == RopeLayout::kInterleaved) {
        rotate_neighbours(x, cos_of, sin_of, a.half);
      } else {
        rotate_halves(x, cos_of, sin_of, a.half);
      }
    }
  }
}

}  // namespace headrace::avx512
