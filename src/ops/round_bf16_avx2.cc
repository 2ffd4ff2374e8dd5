// Recipe bf16 (round_bf16.h) in integer arithmetic: adding just under half of the last bit that stays rounds.
#include <immintrin.h>

#include "ops/round_bf16.h"

namespace headrace::avx2 {
namespace {

constexpr int64_t kLanes = 8;

/// Eight values to the low halves of 32-bit lanes.
__m256i round_lanes(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd);
  __m256i out = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
  const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
  out = _mm256_blendv_epi8(out, quiet, is_nan);
  const __m256i is_tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), magnitude);
  const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x8000));
  return _mm256_blendv_epi8(out, sign, is_tiny);
}

void round_eight(const float* x, std::byte* out) {
  const __m256i lanes = round_lanes(_mm256_loadu_ps(x));
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
