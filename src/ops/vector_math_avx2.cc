#include "ops/vector_math_avx2.h"

namespace headrace::avx2 {

void exp(const ExpArgs& a, RowRange values) noexcept {
  int64_t i = values.begin;
  for (; i + 8 <= values.end; i += 8) _mm256_storeu_ps(a.y + i, exp_f32(_mm256_loadu_ps(a.x + i)));
  const __m256i tail = first_lanes(values.end - i);
  _mm256_maskstore_ps(a.y + i, tail, exp_f32(_mm256_maskload_ps(a.x + i, tail)));
}

}  // namespace headrace::avx2
