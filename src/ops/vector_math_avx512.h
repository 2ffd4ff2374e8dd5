#pragma once

#include <immintrin.h>

#include "ops/vector_math.h"

/// vector_math.h in AVX-512. Only files compiled for that include this; everything is static, so that no copy made here
/// can be the one that other files are linked to.
namespace headrace::avx512 {

[[nodiscard]] static inline __m512 exp_f32(__m512 x) noexcept {
  const __m512 shift = _mm512_set1_ps(kExpShift);
  const __m512 t = _mm512_fmadd_ps(x, _mm512_set1_ps(kExpLog2E), shift);
  const __m512 n = _mm512_sub_ps(t, shift);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kExpLn2High), x);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kExpLn2Low), r);
  const __m512 one = _mm512_set1_ps(1.0f);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(kExpC6), r, _mm512_set1_ps(kExpC5));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC4));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC3));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC2));
  p = _mm512_fmadd_ps(p, r, one);
  p = _mm512_fmadd_ps(p, r, one);
  const __m512i bits = _mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(t), 23));
  const __mmask16 high = _mm512_cmp_ps_mask(x, _mm512_set1_ps(kExpHigh), _CMP_GT_OQ);
  const __mmask16 not_low = _mm512_cmp_ps_mask(x, _mm512_set1_ps(kExpLow), _CMP_NLT_UQ);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  __m512 y = _mm512_maskz_mov_ps(not_low, _mm512_castsi512_ps(bits));
  y = _mm512_mask_mov_ps(y, high, _mm512_set1_ps(__builtin_inff()));
  return _mm512_mask_mov_ps(y, nan, x);
}

[[nodiscard]] static inline float sum_lanes16(__m512 chains) noexcept {
  const __m256 sum8 = _mm256_add_ps(_mm512_castps512_ps256(chains), _mm512_extractf32x8_ps(chains, 1));
  const __m128 sum4 = _mm_add_ps(_mm256_castps256_ps128(sum8), _mm256_extractf128_ps(sum8, 1));
  const __m128 sum2 = _mm_add_ps(sum4, _mm_movehl_ps(sum4, sum4));
  return _mm_cvtss_f32(_mm_add_ss(sum2, _mm_movehdup_ps(sum2)));
}

/// The first n lanes (n <= 0: none, n >= 16: all).
[[nodiscard]] static inline __mmask16 first_lanes(int64_t n) noexcept {
  return static_cast<__mmask16>(n <= 0 ? 0u : n >= 16 ? 0xffffu : (1u << n) - 1u);
}

}  // namespace headrace::avx512
