#include "ops/rope.h"
#include "ops/vector_math_avx2.h"

namespace headrace::avx2 {

/// Pairs x[i], x[i + half].
static void rotate_halves(float* x, const float* cos_of, const float* sin_of, int64_t half) noexcept {
  for (int64_t i = 0; i < half; i += 8) {
    const __m256i lanes = first_lanes(half - i);
    const __m256 c = _mm256_maskload_ps(cos_of + i, lanes), s = _mm256_maskload_ps(sin_of + i, lanes);
    const __m256 a = _mm256_maskload_ps(x + i, lanes), b = _mm256_maskload_ps(x + half + i, lanes);
    _mm256_maskstore_ps(x + i, lanes, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
    _mm256_maskstore_ps(x + half + i, lanes, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
  }
}

/// Pairs x[2 i], x[2 i + 1], four in a vector: fmaddsub takes the product off in even lanes and adds it in odd ones.
static void rotate_neighbours(float* x, const float* cos_of, const float* sin_of, int64_t half) noexcept {
  const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  for (int64_t i = 0; i < half; i += 4) {
    const __m128i angles = _mm256_castsi256_si128(first_lanes(half - i));
    const __m256i lanes = first_lanes(2 * (half - i));
    const __m256 c = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_maskload_ps(cos_of + i, angles)), twice);
    const __m256 s = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_maskload_ps(sin_of + i, angles)), twice);
    const __m256 v = _mm256_maskload_ps(x + 2 * i, lanes);
    const __m256 swapped = _mm256_permute_ps(v, 0b10110001);
    _mm256_maskstore_ps(x + 2 * i, lanes, _mm256_fmaddsub_ps(v, c, _mm256_mul_ps(swapped, s)));
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

}  // namespace headrace::avx2
