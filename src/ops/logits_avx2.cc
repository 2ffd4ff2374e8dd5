#include "ops/logits.h"
#include "ops/vector_math_avx2.h"

namespace headrace::avx2 {
namespace {

constexpr int64_t kUnroll = 4;  // as many comparisons as hide each other's latency

float largest(__m256 v) noexcept {
  const __m128 max4 = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 max2 = _mm_max_ps(max4, _mm_movehl_ps(max4, max4));
  return _mm_cvtss_f32(_mm_max_ss(max2, _mm_movehdup_ps(max2)));
}

/// The first i in [begin, end) where `matches` (8 lanes in, 8 masks out) holds; end where there is none.
template <class Matches>
int64_t find_first(const float* x, int64_t begin, int64_t end, Matches matches) noexcept {
  int64_t i = begin;
  for (; i + 8 * kUnroll <= end; i += 8 * kUnroll) {
    __m256 any = matches(_mm256_loadu_ps(x + i));
    for (int64_t u = 1; u < kUnroll; ++u) any = _mm256_or_ps(any, matches(_mm256_loadu_ps(x + i + 8 * u)));
    if (_mm256_movemask_ps(any) != 0) break;
  }
  for (; i < end; i += 8) {
    const __m256i lanes = first_lanes(end - i);
    const __m256 found = _mm256_and_ps(matches(_mm256_maskload_ps(x + i, lanes)), _mm256_castsi256_ps(lanes));
    const int mask = _mm256_movemask_ps(found);
    if (mask != 0) return i + __builtin_ctz(static_cast<unsigned>(mask));
  }
  return end;
}

}  // namespace

int64_t arg_max(const ArgMaxArgs& a) noexcept {
  const __m256 nothing = _mm256_set1_ps(-__builtin_inff());
  __m256 best[kUnroll] = {nothing, nothing, nothing, nothing};
  int64_t i = 0;
  // Where either is NaN, max gives its second operand.
  for (; i + 8 * kUnroll <= a.n; i += 8 * kUnroll) {
    for (int64_t u = 0; u < kUnroll; ++u) best[u] = _mm256_max_ps(_mm256_loadu_ps(a.x + i + 8 * u), best[u]);
  }
  for (; i < a.n; i += 8) {
    const __m256i lanes = first_lanes(a.n - i);
    const __m256 x = _mm256_blendv_ps(nothing, _mm256_maskload_ps(a.x + i, lanes), _mm256_castsi256_ps(lanes));
    best[0] = _mm256_max_ps(x, best[0]);
  }
  const float max = largest(_mm256_max_ps(_mm256_max_ps(best[0], best[1]), _mm256_max_ps(best[2], best[3])));
  if (max == -__builtin_inff()) return -1;
  const __m256 all_max = _mm256_set1_ps(max);
  return find_first(a.x, 0, a.n, [&](__m256 x) noexcept { return _mm256_cmp_ps(x, all_max, _CMP_EQ_OQ); });
}

void logit_weights(const LogitWeightsArgs& a) noexcept {
  const __m256 best = _mm256_set1_ps(a.best), scale = _mm256_set1_ps(a.scale), least = _mm256_set1_ps(a.least);
  const __m256 one = _mm256_set1_ps(1.0f);
  for (int64_t begin = 0; begin < a.n; begin += kWeightBlock) {
    const int64_t end = begin + kWeightBlock < a.n ? begin + kWeightBlock : a.n;
    __m256d chains[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
    for (int64_t i = begin; i < end; i += 16) {
      for (int64_t half = 0; half < 2; ++half) {
        const __m256i lanes = first_lanes(end - i - 8 * half);
        const __m256 x = _mm256_maskload_ps(a.x + i + 8 * half, lanes);
        __m256 w = exp_f32(_mm256_mul_ps(_mm256_sub_ps(x, best), scale));
        w = _mm256_blendv_ps(w, one, _mm256_cmp_ps(x, best, _CMP_EQ_OQ));
        w = _mm256_and_ps(w, _mm256_cmp_ps(w, least, _CMP_GE_OQ));
        w = _mm256_and_ps(w, _mm256_castsi256_ps(lanes));  // what is past the end adds 0
        _mm256_maskstore_ps(a.w + i + 8 * half, lanes, w);
        __m256d* sum = chains + 2 * half;
        sum[0] = _mm256_add_pd(sum[0], _mm256_cvtps_pd(_mm256_castps256_ps128(w)));
        sum[1] = _mm256_add_pd(sum[1], _mm256_cvtps_pd(_mm256_extractf128_ps(w, 1)));
      }
    }
    const __m256d sum4 = _mm256_add_pd(_mm256_add_pd(chains[0], chains[2]), _mm256_add_pd(chains[1], chains[3]));
    const __m128d sum2 = _mm_add_pd(_mm256_castpd256_pd128(sum4), _mm256_extractf128_pd(sum4, 1));
    a.sums[begin / kWeightBlock] = _mm_cvtsd_f64(_mm_add_sd(sum2, _mm_unpackhi_pd(sum2, sum2)));
  }
}

int64_t next_above(const NextAboveArgs& a) noexcept {
  const __m256 threshold = _mm256_set1_ps(a.threshold);
  return find_first(a.x, a.begin, a.end, [&](__m256 x) noexcept { return _mm256_cmp_ps(x, threshold, _CMP_GT_OQ); });
}

}  // namespace headrace::avx2
