// Recipe bf16x32 (matmul.h) in vectors of sixteen neurons; matmul_bf16_vectors.h has the loops. vdpbf16ps is no help:
// it adds odd and even products to one chain, and takes twice as long as the two multiplications.
#include <immintrin.h>

#include "ops/matmul_bf16_vectors.h"

namespace headrace::avx512 {
namespace {

struct Vectors {
  using F = __m512;
  static constexpr int64_t kLanes = 16;
  static constexpr int kMostRows = 8;  // its chains are half of the 32 registers

  static __m512i load_pairs(const std::byte* p) { return _mm512_load_si512(p); }
  static F even(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
  static F odd(__m512i pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
  }
  static F widen(const std::byte* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F v) { _mm512_storeu_ps(p, v); }
  static F zero() { return _mm512_setzero_ps(); }
  static F broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F canonical(F v) {
    const F nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
  }
};

[[gnu::noinline]] void run(const MatmulArgs& args, RowRange groups) { Bf16Product<Vectors>::run(args, groups); }

}  // namespace

void matmul_bf16(const MatmulArgs& args, RowRange groups) noexcept {
  const FlushSubnormals flush;
  run(args, groups);
}

}  // namespace headrace::avx512
