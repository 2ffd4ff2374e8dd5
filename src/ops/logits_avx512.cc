#include "ops/logits.h"
#include "ops/vector_math_avx512.h"

namespace headrace::avx512 {
namespace {

constexpr int64_t kUnroll = 4;  // as many comparisons as hide each other's latency

/// The first i in [begin, end) where `matches` (16 values in, a mask out) holds; end where there is none.
template <class Matches>
int64_t find_first(const float* x, int64_t begin, int64_t end, Matches matches) noexcept {
  int64_t i = begin;
  for (; i + 16 * kUnroll <= end; i += 16 * kUnroll) {
    unsigned any = 0;
    for (int64_t u = 0; u < kUnroll; ++u) any |= matches(_mm512_loadu_ps(x + i + 16 * u));
    if (any != 0) break;
  }
  for (; i < end; i += 16) {
    const __mmask16 lanes = first_lanes(end - i);
    const unsigned found = static_cast<unsigned>(matches(_mm512_maskz_loadu_ps(lanes, x + i))) & lanes;
    if (found != 0) return i + __builtin_ctz(found);
  }
  return end;
}

}  // namespace

int64_t arg_max(const ArgMaxArgs& a) noexcept {
  const __m512 nothing = _mm512_set1_ps(-__builtin_inff());
  __m512 best[kUnroll] = {nothing, nothing, nothing, nothing};
  int64_t i = 0;
  // Where either is NaN, max gives its second operand.
  for (; i + 16 * kUnroll <= a.n; i += 16 * kUnroll) {
    for (int64_t u = 0; u < kUnroll; ++u) best[u] = _mm512_max_ps(_mm512_loadu_ps(a.x + i + 16 * u), best[u]);
  }
  for (; i < a.n; i += 16) {
    best[0] = _mm512_max_ps(_mm512_mask_loadu_ps(nothing, first_lanes(a.n - i), a.x + i), best[0]);
  }
  const float max =
      _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(best[0], best[1]), _mm512_max_ps(best[2], best[3])));
  if (max == -__builtin_inff()) return -1;
  const __m512 all_max = _mm512_set1_ps(max);
  return find_first(a.x, 0, a.n, [&](__m512 x) noexcept { return _mm512_cmp_ps_mask(x, all_max, _CMP_EQ_OQ); });
}

void logit_weights(const LogitWeightsArgs& a) noexcept {
  const __m512 best = _mm512_set1_ps(a.best), scale = _mm512_set1_ps(a.scale), least = _mm512_set1_ps(a.least);
  for (int64_t begin = 0; begin < a.n; begin += kWeightBlock) {
    const int64_t end = begin + kWeightBlock < a.n ? begin + kWeightBlock : a.n;
    __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();  // chains 0 to 7 and 8 to 15
    for (int64_t i = begin; i < end; i += 16) {
      const __mmask16 lanes = first_lanes(end - i);
      const __m512 x = _mm512_maskz_loadu_ps(lanes, a.x + i);
      __m512 w = exp_f32(_mm512_mul_ps(_mm512_sub_ps(x, best), scale));
      w = _mm512_mask_mov_ps(w, _mm512_cmp_ps_mask(x, best, _CMP_EQ_OQ), _mm512_set1_ps(1.0f));
      // What is past the end adds 0.
      w = _mm512_maskz_mov_ps(_mm512_mask_cmp_ps_mask(lanes, w, least, _CMP_GE_OQ), w);
      _mm512_mask_storeu_ps(a.w + i, lanes, w);
      low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm512_castps512_ps256(w)));
      high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(w, 1)));
    }
    const __m512d sum8 = _mm512_add_pd(low, high);
    const __m256d sum4 = _mm256_add_pd(_mm512_castpd512_pd256(sum8), _mm512_extractf64x4_pd(sum8, 1));
    const __m128d sum2 = _mm_add_pd(_mm256_castpd256_pd128(sum4), _mm256_extractf128_pd(sum4, 1));
    a.sums[begin / kWeightBlock] = _mm_cvtsd_f64(_mm_add_sd(sum2, _mm_unpackhi_pd(sum2, sum2)));
  }
}

int64_t next_above(const NextAboveArgs& a) noexcept {
  const __m512 threshold = _mm512_set1_ps(a.threshold);
  return find_first(a.x, a.begin, a.end,
                    [&](__m512 x) noexcept { return _mm512_cmp_ps_mask(x, threshold, _CMP_GT_OQ); });
}

}  // namespace headrace::avx512
