#include <immintrin.h>

#include "ops/quantize_kernels.h"
#include "ops/quantize_rows.h"
#include "ops/vector_math_avx2.h"

namespace headrace::avx2 {
namespace {

constexpr int64_t kLanes = 8;

__m256 abs_ps(__m256 v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }

float max_lane(__m256 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

/// round(x * inv), 0 where that is not a number.
__m256i round_lanes(const float* x, __m256 inv) {
  const __m256 t = _mm256_mul_ps(_mm256_loadu_ps(x), inv);
  const __m256 clamped = _mm256_min_ps(_mm256_max_ps(t, _mm256_set1_ps(-127.0f)), _mm256_set1_ps(127.0f));
  return _mm256_cvtps_epi32(_mm256_and_ps(clamped, _mm256_cmp_ps(t, t, _CMP_ORD_Q)));
}

int sum_lanes(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

/// Lists the values of a block above the limit and copies the block to `kept` with zeros in their places. Returns the
/// largest magnitude that is left.
float take_outliers(const float* x, int64_t first, int64_t block, float limit, float* kept, OutlierList& outliers) {
  __m256 most = _mm256_setzero_ps();
  for (int64_t i = 0; i < block; i += kLanes) {
    const __m256 values = _mm256_loadu_ps(x + i), a = abs_ps(values);
    const __m256 above = _mm256_cmp_ps(a, _mm256_set1_ps(limit), _CMP_GT_OQ);  // false for a NaN
    _mm256_storeu_ps(kept + i, _mm256_andnot_ps(above, values));
    most = _mm256_max_ps(_mm256_andnot_ps(above, a), most);
    outliers.add_lanes(x + i, first + i, static_cast<uint32_t>(_mm256_movemask_ps(above)));
  }
  return max_lane(most);
}

/// Rounds block [first, first + block) of row x, at most `most_values`; adds up each `sum_block` of its q's.
template <int64_t most_values, int64_t sum_block, int rounds>
void quantize_block(const float* x, int64_t first, int64_t block, int8_t* q, float* scale, int16_t* sum,
                    OutlierList& outliers) {
  x += first;
  __m256 most = _mm256_setzero_ps(), total[2] = {most, most};
  for (int64_t i = 0; i < block; i += kLanes) {
    const __m256 a = abs_ps(_mm256_loadu_ps(x + i));
    // max_ps gives its second operand where one is not a number: `most` stays a number.
    most = _mm256_max_ps(a, most);
    __m256& chains = total[i / kLanes % 2];
    chains = _mm256_add_ps(chains, _mm256_and_ps(a, _mm256_cmp_ps(a, a, _CMP_ORD_Q)));
  }
  float amax = max_lane(most);
  const float factor = static_cast<float>(kOutlierFactor) / static_cast<float>(block);
  float limit = sum_lanes16(total[0], total[1]) * factor;
  if (rounds == 2 && amax > limit) {
    total[0] = total[1] = _mm256_setzero_ps();
    for (int64_t i = 0; i < block; i += kLanes) {
      const __m256 a = abs_ps(_mm256_loadu_ps(x + i));
      __m256& chains = total[i / kLanes % 2];
      chains = _mm256_add_ps(chains, _mm256_and_ps(a, _mm256_cmp_ps(a, _mm256_set1_ps(limit), _CMP_LE_OQ)));
    }
    limit = sum_lanes16(total[0], total[1]) * factor;
  }
  float kept[most_values];
  if (amax > limit) {
    amax = take_outliers(x, first, block, limit, kept, outliers);
    x = kept;
  }
  *scale = amax / 127.0f;
  const __m256 inv = _mm256_set1_ps(amax > 0 ? 127.0f / amax : 0.0f);
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);  // undoes the packs' work on 128-bit halves
  for (int64_t i = 0; i < block; i += 32) {
    const __m256i a = round_lanes(x + i, inv), b = round_lanes(x + i + 8, inv);
    const __m256i c = round_lanes(x + i + 16, inv), d = round_lanes(x + i + 24, inv);
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + i), _mm256_permutevar8x32_epi32(bytes, in_order));
    const int low = sum_lanes(_mm256_add_epi32(a, b)), high = sum_lanes(_mm256_add_epi32(c, d));
    if constexpr (sum_block == 32) {
      sum[i / 32] = static_cast<int16_t>(low + high);
    } else {
      sum[i / 16] = static_cast<int16_t>(low);
      sum[i / 16 + 1] = static_cast<int16_t>(high);
    }
  }
}

}  // namespace

void quantize_q8x32(const QuantizeArgs& args, RowRange rows) noexcept {
  quantize_rows<32, 32>(args, rows, quantize_block<32, 32, 1>);
}
void quantize_q8x256(const QuantizeArgs& args, RowRange rows) noexcept {
  quantize_rows<256, 16>(args, rows, quantize_block<256, 16, 1>);
}
void quantize_q8x256_twice(const QuantizeArgs& args, RowRange rows) noexcept {
  quantize_rows<256, 16>(args, rows, quantize_block<256, 16, 2>);
}

}  // namespace headrace::avx2
