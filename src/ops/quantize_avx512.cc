#include <immintrin.h>

#include "ops/quantize_kernels.h"
#include "ops/quantize_rows.h"
#include "ops/vector_math_avx512.h"

namespace headrace::avx512 {
namespace {

constexpr int64_t kLanes = 16;

/// round(x * inv), 0 where that is not a number.
__m512i round_lanes(const float* x, __m512 inv) {
  const __m512 t = _mm512_mul_ps(_mm512_loadu_ps(x), inv);
  const __m512 clamped = _mm512_min_ps(_mm512_max_ps(t, _mm512_set1_ps(-127.0f)), _mm512_set1_ps(127.0f));
  return _mm512_maskz_cvtps_epi32(_mm512_cmp_ps_mask(t, t, _CMP_ORD_Q), clamped);
}

/// Lists the values of a block above the limit and copies the block to `kept` with zeros in their places. Returns the
/// largest magnitude that is left.
float take_outliers(const float* x, int64_t first, int64_t block, float limit, float* kept, OutlierList& outliers) {
  __m512 most = _mm512_setzero_ps();
  for (int64_t i = 0; i < block; i += kLanes) {
    const __m512 values = _mm512_loadu_ps(x + i), a = _mm512_abs_ps(values);
    const __mmask16 above = _mm512_cmp_ps_mask(a, _mm512_set1_ps(limit), _CMP_GT_OQ);  // false for a NaN
    const auto others = static_cast<__mmask16>(~above);
    _mm512_storeu_ps(kept + i, _mm512_maskz_mov_ps(others, values));
    most = _mm512_mask_max_ps(most, others, a, most);
    outliers.add_lanes(x + i, first + i, above);
  }
  return _mm512_reduce_max_ps(most);
}

/// Rounds block [first, first + block) of row x, at most `most_values`; adds up each `sum_block` of its q's.
template <int64_t most_values, int64_t sum_block, int rounds>
void quantize_block(const float* x, int64_t first, int64_t block, int8_t* q, float* scale, int16_t* sum,
                    OutlierList& outliers) {
  x += first;
  __m512 most = _mm512_setzero_ps(), total = most;
  for (int64_t i = 0; i < block; i += kLanes) {
    const __m512 a = _mm512_abs_ps(_mm512_loadu_ps(x + i));
    // max_ps gives its second operand where one is not a number: `most` stays a number.
    most = _mm512_max_ps(a, most);
    total = _mm512_mask_add_ps(total, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), total, a);
  }
  float amax = _mm512_reduce_max_ps(most);
  const float factor = static_cast<float>(kOutlierFactor) / static_cast<float>(block);
  float limit = sum_lanes16(total) * factor;
  if (rounds == 2 && amax > limit) {
    total = _mm512_setzero_ps();
    for (int64_t i = 0; i < block; i += kLanes) {
      const __m512 a = _mm512_abs_ps(_mm512_loadu_ps(x + i));
      total = _mm512_mask_add_ps(total, _mm512_cmp_ps_mask(a, _mm512_set1_ps(limit), _CMP_LE_OQ), total, a);
    }
    limit = sum_lanes16(total) * factor;
  }
  float kept[most_values];
  if (amax > limit) {
    amax = take_outliers(x, first, block, limit, kept, outliers);
    x = kept;
  }
  *scale = amax / 127.0f;
  const __m512 inv = _mm512_set1_ps(amax > 0 ? 127.0f / amax : 0.0f);
  for (int64_t i = 0; i < block; i += 32) {
    const __m512i a = round_lanes(x + i, inv), b = round_lanes(x + i + 16, inv);
    const __m256i bytes = _mm256_set_m128i(_mm512_cvtepi32_epi8(b), _mm512_cvtepi32_epi8(a));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + i), bytes);
    // Each half's sum in all of its lanes.
    __m256i sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
    const int low = _mm256_extract_epi32(sums, 0), high = _mm256_extract_epi32(sums, 4);
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

}  // namespace headrace::avx512
