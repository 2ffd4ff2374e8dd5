#include "ops/elementwise.h"
#include "ops/vector_math_avx2.h"

namespace headrace::avx2 {

void add(const AddArgs& a, RowRange rows) noexcept {
  const int64_t end = rows.end * a.dim;
  int64_t i = rows.begin * a.dim;
  for (; i + 8 <= end; i += 8) {
    _mm256_storeu_ps(a.y + i, _mm256_add_ps(_mm256_loadu_ps(a.a + i), _mm256_loadu_ps(a.b + i)));
  }
  for (; i < end; ++i) a.y[i] = a.a[i] + a.b[i];
}

static __m256 gated(__m256 x, __m256 up) noexcept {
  const __m256 negated = _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
  const __m256 silu = _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), exp_f32(negated)));
  return _mm256_mul_ps(silu, up);
}

void silu_mul(const SiluMulArgs& a, RowRange rows) noexcept {
  const int64_t end = rows.end * a.dim;
  int64_t i = rows.begin * a.dim;
  for (; i + 8 <= end; i += 8) {
    _mm256_storeu_ps(a.y + i, gated(_mm256_loadu_ps(a.gate + i), _mm256_loadu_ps(a.up + i)));
  }
  const __m256i tail = first_lanes(end - i);
  const __m256 y = gated(_mm256_maskload_ps(a.gate + i, tail), _mm256_maskload_ps(a.up + i, tail));
  _mm256_maskstore_ps(a.y + i, tail, y);
}

}  // namespace headrace::avx2
