#include "ops/elementwise.h"
#include "ops/vector_math_avx512.h"

namespace headrace::avx512 {

void add(const AddArgs& a, RowRange rows) noexcept {
  const int64_t end = rows.end * a.dim;
  for (int64_t i = rows.begin * a.dim; i < end; i += 16) {
    const __mmask16 lanes = first_lanes(end - i);
    const __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, a.a + i), _mm512_maskz_loadu_ps(lanes, a.b + i));
    _mm512_mask_storeu_ps(a.y + i, lanes, sum);
  }
}

void silu_mul(const SiluMulArgs& a, RowRange rows) noexcept {
  const int64_t end = rows.end * a.dim;
  for (int64_t i = rows.begin * a.dim; i < end; i += 16) {
    const __mmask16 lanes = first_lanes(end - i);
    const __m512 x = _mm512_maskz_loadu_ps(lanes, a.gate + i);
    const __m512 negated = _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
    const __m512 silu = _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), exp_f32(negated)));
    _mm512_mask_storeu_ps(a.y + i, lanes, _mm512_mul_ps(silu, _mm512_maskz_loadu_ps(lanes, a.up + i)));
  }
}

}  // namespace headrace::avx512
