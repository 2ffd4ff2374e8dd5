#include <immintrin.h>

#include "backend/cpu/limits/limit_kernels.h"

namespace headrace::avx512 {
namespace {

/// Keeps a value in its register as if it changed here: what it enters is computed again each round.
template <class Vector>
inline void touch(Vector& v) {
  asm volatile("" : "+v"(v));
}

constexpr int kChains = 16;

/// rounds times `step` on each of kChains sums.
template <class Vector, class Step>
inline void run_chains(int64_t rounds, Vector zero, const Step& step) {
  Vector sum[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sum[i] = zero;
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      sum[i] = step(sum[i]);
      touch(sum[i]);
    }
  }
}

}  // namespace

void peak_f32(int64_t rounds) noexcept {
  const __m512 a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(0.25f);
  run_chains(rounds, _mm512_setzero_ps(), [&](__m512 sum) { return _mm512_fmadd_ps(a, b, sum); });
}

void peak_int8(int64_t rounds) noexcept {
  const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-2);
  run_chains(rounds, _mm512_setzero_si512(), [&](__m512i sum) { return _mm512_dpbusd_epi32(sum, a, b); });
}

void peak_bf16(int64_t rounds) noexcept {
  const auto a = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f00));  // 0.5
  run_chains(rounds, _mm512_setzero_ps(), [&](__m512 sum) { return _mm512_dpbf16_ps(sum, a, a); });
}

uint64_t read_streams(const std::byte* data, int64_t bytes) noexcept {
  const int64_t stream = bytes / kReadStreams;
  __m512i sum[kReadStreams];
#pragma GCC unroll 8
  for (int s = 0; s < kReadStreams; ++s) sum[s] = _mm512_setzero_si512();
  for (int64_t i = 0; i < stream; i += 64) {
#pragma GCC unroll 8
    for (int s = 0; s < kReadStreams; ++s) {
      const std::byte* p = data + s * stream + i;
      _mm_prefetch(reinterpret_cast<const char*>(p + kReadAheadBytes), _MM_HINT_T0);
      sum[s] = _mm512_add_epi64(sum[s], _mm512_loadu_si512(p));
    }
  }
  __m512i total = sum[0];
  for (int s = 1; s < kReadStreams; ++s) total = _mm512_add_epi64(total, sum[s]);
  return static_cast<uint64_t>(_mm512_reduce_add_epi64(total));
}

}  // namespace headrace::avx512
