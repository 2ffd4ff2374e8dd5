// Recipe bf16x32 (matmul.h) in vectors of eight neurons; matmul_bf16_vectors.h has the loops.
#include <immintrin.h>

#include "ops/matmul_bf16_vectors.h"

namespace headrace::avx2 {
namespace {

struct Vectors {
  using F = __m256;
  static constexpr int64_t kLanes = 8;
  static constexpr int kMostRows = 4;  // its chains are half of the 16 registers

  static __m256i load_pairs(const std::byte* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }
  static F even(__m256i pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
  static F odd(__m256i pairs) {
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
  }
  static F widen(const std::byte* p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, F v) { _mm256_storeu_ps(p, v); }
  static F zero() { return _mm256_setzero_ps(); }
  static F broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F canonical(F v) {
    const F nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  }
};

[[gnu::noinline]] void run(const MatmulArgs& args, RowRange groups) { Bf16Product<Vectors>::run(args, groups); }

}  // namespace

void matmul_bf16(const MatmulArgs& args, RowRange groups) noexcept {
  const FlushSubnormals flush;
  run(args, groups);
}

}  // namespace headrace::avx2
