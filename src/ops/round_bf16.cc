#include "ops/round_bf16.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"

namespace headrace {

void ref::round_bf16(const QuantizeArgs& args, RowRange rows) noexcept {
  const int64_t k = args.y.k, row_bytes = act_row_bytes(args.y.form, k);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    auto* out = reinterpret_cast<uint16_t*>(args.y.data + r * row_bytes);
    for (int64_t i = 0; i < k; ++i) {
      const float x = args.x[r * k + i];
      out[i] = f32_to_bf16(std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x);
    }
    std::fill(out + k, out + row_bytes / 2, uint16_t{0});
  }
}

constinit const OpTable<QuantizeFn> kRoundBf16{
    "round_bf16",
    {{Isa::kRef, ref::round_bf16}, {Isa::kAvx2, HR_X86(avx2::round_bf16)}, {Isa::kAvx512, HR_X86(avx512::round_bf16)}}};

}  // namespace headrace
