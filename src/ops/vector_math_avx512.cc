#include "ops/vector_math_avx512.h"

namespace headrace::avx512 {

void exp(const ExpArgs& a, RowRange values) noexcept {
  for (int64_t i = values.begin; i < values.end; i += 16) {
    const __mmask16 lanes = first_lanes(values.end - i);
    _mm512_mask_storeu_ps(a.y + i, lanes, exp_f32(_mm512_maskz_loadu_ps(lanes, a.x + i)));
  }
}

}  // namespace headrace::avx512
