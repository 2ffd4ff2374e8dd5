// Recipe bf16 (round_bf16.h): one instruction.
#include <immintrin.h>

#include "ops/round_bf16.h"

namespace headrace::avx512 {
namespace {

constexpr int64_t kLanes = 32;  // a record is a whole number of them

__m512 load(const float* x, int64_t count) {
  const auto mask = static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
  return _mm512_maskz_loadu_ps(mask, x);
}

}  // namespace

void round_bf16(const QuantizeArgs& args, RowRange rows) noexcept {
  const int64_t k = args.y.k, row_bytes = act_row_bytes(args.y.form, k);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* x = args.x + r * k;
    std::byte* out = args.y.data + r * row_bytes;
    for (int64_t i = 0; i < row_bytes / 2; i += kLanes) {
      // Where a record ends in padding, nothing is left to load: the masks are 0.
      const __m512 low = load(x + i, k - i), high = load(x + i + 16, k - i - 16);
      const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
      _mm512_store_si512(out + i * 2, reinterpret_cast<const __m512i&>(both));
    }
  }
}

}  // namespace headrace::avx512
