// Recipe bf16 (round_bf16.h) in integer arithmetic.
#include "ops/round_bf16_avx2.h"

#include <immintrin.h>

#include "ops/round_bf16.h"

namespace headrace::avx2 {
namespace {

constexpr int64_t kLanes = 8;

void round_eight(const float* x, std::byte* out) {
  const __m256i lanes = round_lanes_bf16(_mm256_loadu_ps(x));
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(lanes, lanes), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(packed));
}

}  // namespace

void round_bf16(const QuantizeArgs& args, RowRange rows) noexcept {
  const int64_t k = args.y.k, row_bytes = act_row_bytes(args.y.form, k);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* x = args.x + r * k;
    std::byte* out = args.y.data + r * row_bytes;
    int64_t i = 0;
    for (; i + kLanes <= k; i += kLanes) round_eight(x + i, out + i * 2);
    if (i < k) {
      alignas(32) float rest[kLanes] = {};
      __builtin_memcpy(rest, x + i, static_cast<size_t>((k - i) * 4));
      round_eight(rest, out + i * 2);  // a record is a whole number of these
      i += kLanes;
    }
    __builtin_memset(out + i * 2, 0, static_cast<size_t>(row_bytes - i * 2));
  }
}

}  // namespace headrace::avx2
