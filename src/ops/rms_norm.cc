#include "ops/rms_norm.h"

#include <cmath>

#include "ops/vector_math.h"

namespace headrace {

namespace ref {
static void rms_norm(const RmsNormArgs& a, RowRange rows) noexcept {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* x = a.x + r * a.dim;
    float* y = a.y + r * a.dim;
    float chains[16] = {};
    for (int64_t i = 0; i < a.dim; ++i) chains[i % 16] = std::fma(x[i], x[i], chains[i % 16]);
    const float mean = sum_lanes16(chains) / static_cast<float>(a.dim);
    const float factor = 1.0f / std::sqrt(mean + a.eps);
    for (int64_t i = 0; i < a.dim; ++i) y[i] = (x[i] * factor) * a.w[i];
  }
}
}  // namespace ref

namespace avx2 {
void rms_norm(const RmsNormArgs& a, RowRange rows) noexcept;
}
namespace avx512 {
void rms_norm(const RmsNormArgs& a, RowRange rows) noexcept;
}

constinit const OpTable<RmsNormFn> kRmsNorm{
    "rms_norm",
    {{Isa::kRef, ref::rms_norm}, {Isa::kAvx2, HR_X86(avx2::rms_norm)}, {Isa::kAvx512, HR_X86(avx512::rms_norm)}}};

}  // namespace headrace
