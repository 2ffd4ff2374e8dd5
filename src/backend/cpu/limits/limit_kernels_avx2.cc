#include <immintrin.h>

#include "backend/cpu/limits/limit_kernels.h"

namespace headrace::avx2 {
namespace {

/// Keeps a value in its register as if it changed here: what it enters is computed again each round.
template <class Vector>
inline void touch(Vector& v) {
  asm volatile("" : "+x"(v));
}

}  // namespace

void peak_f32(int64_t rounds) noexcept {
  constexpr int kChains = 12;  // 2 units, 4 cycles, and some
  __m256 sum[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sum[i] = _mm256_setzero_ps();
  __m256 a = _mm256_set1_ps(0.5f);
  const __m256 b = _mm256_set1_ps(0.25f);
  for (int64_t r = 0; r < rounds; ++r) {
    touch(a);
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = _mm256_fmadd_ps(a, b, sum[i]);
  }
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) touch(sum[i]);
}

void peak_int8(int64_t rounds) noexcept {
  constexpr int kChains = 8;
  __m256i sum[kChains];
#pragma GCC unroll 8
  for (int i = 0; i < kChains; ++i) sum[i] = _mm256_setzero_si256();
  __m256i a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(-2), ones = _mm256_set1_epi16(1);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kChains; ++i) {
      touch(a);
      sum[i] = _mm256_add_epi32(sum[i], _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kChains; ++i) touch(sum[i]);
}

uint64_t read_streams(const std::byte* data, int64_t bytes) noexcept {
  const int64_t stream = bytes / kReadStreams;
  __m256i sum[kReadStreams];
#pragma GCC unroll 8
  for (int s = 0; s < kReadStreams; ++s) sum[s] = _mm256_setzero_si256();
  for (int64_t i = 0; i < stream; i += 64) {
#pragma GCC unroll 8
    for (int s = 0; s < kReadStreams; ++s) {
      const std::byte* p = data + s * stream + i;
      _mm_prefetch(reinterpret_cast<const char*>(p + kReadAheadBytes), _MM_HINT_T0);
      const auto* v = reinterpret_cast<const __m256i*>(p);
      sum[s] = _mm256_add_epi64(sum[s], _mm256_add_epi64(_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1)));
    }
  }
  alignas(32) uint64_t lanes[4];
  __m256i total = sum[0];
  for (int s = 1; s < kReadStreams; ++s) total = _mm256_add_epi64(total, sum[s]);
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), total);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

}  // namespace headrace::avx2
