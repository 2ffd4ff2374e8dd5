#pragma once

#include <immintrin.h>

#include "ops/vector_math.h"

/// vector_math.h in AVX2 + FMA. Only files compiled for that include this; everything is static, so that no copy made
/// here can be the one that other files are linked to.
namespace headrace::avx2 {

[[nodiscard]] static inline __m256 exp_f32(__m256 x) noexcept {
  const __m256 shift = _mm256_set1_ps(kExpShift);
  const __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(kExpLog2E), shift);
  const __m256 n = _mm256_sub_ps(t, shift);
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kExpLn2High), x);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kExpLn2Low), r);
  const __m256 one = _mm256_set1_ps(1.0f);
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(kExpC6), r, _mm256_set1_ps(kExpC5));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC4));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC3));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC2));
  p = _mm256_fmadd_ps(p, r, one);
  p = _mm256_fmadd_ps(p, r, one);
  const __m256i bits = _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23));
  __m256 y = _mm256_castsi256_ps(bits);
  y = _mm256_blendv_ps(y, _mm256_set1_ps(__builtin_inff()), _mm256_cmp_ps(x, _mm256_set1_ps(kExpHigh), _CMP_GT_OQ));
  y = _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(kExpLow), _CMP_LT_OQ), y);
  return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/// Chains 0 to 7 and 8 to 15.
[[nodiscard]] static inline float sum_lanes16(__m256 low, __m256 high) noexcept {
  const __m256 sum8 = _mm256_add_ps(low, high);
  const __m128 sum4 = _mm_add_ps(_mm256_castps256_ps128(sum8), _mm256_extractf128_ps(sum8, 1));
  const __m128 sum2 = _mm_add_ps(sum4, _mm_movehl_ps(sum4, sum4));
  return _mm_cvtss_f32(_mm_add_ss(sum2, _mm_movehdup_ps(sum2)));
}

/// All ones in the first n lanes (n <= 0: none, n >= 8: all), for masked loads and stores.
[[nodiscard]] static inline __m256i first_lanes(int64_t n) noexcept {
  const int count = static_cast<int>(n < 0 ? 0 : n > 8 ? 8 : n);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

}  // namespace headrace::avx2
