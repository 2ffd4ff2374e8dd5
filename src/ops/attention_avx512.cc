#include "ops/attention_kernels.h"
#include "ops/attention_products.h"
#include "ops/attention_vectors_avx512.h"
#include "ops/flush_subnormals.h"

namespace headrace::avx512 {
namespace {

struct Vectors : AttentionVectors {
  static constexpr int kScoreVecs[kTilePairs + 1] = {0, 8, 4, 4, 4};  // at most 16 chains, of 32 registers
  static constexpr int kValueVecs[kTilePairs + 1] = {0, 8, 8, 4, 4};
};

struct F32 {
  static constexpr bool kIsPaired = false, kHasScales = false, kDecodes = false, kFetches = true;
  static constexpr int64_t kBytes = 4;
  static __m512 load(const std::byte* p) { return _mm512_loadu_ps(p); }
  static __m512 load(const std::byte* p, int64_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
  static __m512 query(__m512 q) { return q; }
  static __m512 weight(__m512 p) { return p; }
};
struct F16 : F32 {
  static constexpr bool kDecodes = true;
  static constexpr int64_t kBytes = 2;
  static __m512 load(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static __m512 load(const std::byte* p, int64_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n), p));
  }
};
struct I8 : F32 {
  static constexpr bool kHasScales = true, kDecodes = true;
  static constexpr int64_t kBytes = 1;
  static __m512 load(const std::byte* p) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes));
  }
  static __m512 load(const std::byte* p, int64_t n) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first_lanes(n), p)));
  }
  static __m512 key_scales(const KvLayout& layout, const Chunk& chunk, int64_t t) {
    return _mm512_loadu_ps(chunk.keys[t / kBlockTokens] + kv_key_bytes(layout));
  }
  static __m512 value_scales(const KvLayout& layout, const Chunk& chunk, int64_t t) {
    return _mm512_loadu_ps(chunk.values[t / kBlockTokens] + kv_value_bytes(layout));
  }
};
struct BF16 {
  static constexpr bool kIsPaired = true, kHasScales = false, kFetches = true;
  static constexpr int64_t kBytes = 4;
  static __m512i load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static __m512 even(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
  static __m512 odd(__m512i pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
  }
  static __m512 rounded(__m512 x) {
    const __m512i wide = _mm512_cvtepu16_epi32(round_to_bf16(x));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  static __m512 query(__m512 q) { return rounded(q); }
  static __m512 weight(__m512 p) { return rounded(p); }
};
/// Two chains a vector: fewer vectors.
struct PairVectors : AttentionVectors {
  static constexpr int kScoreVecs[kTilePairs + 1] = {0, 4, 4, 2, 2};
  static constexpr int kValueVecs[kTilePairs + 1] = {0, 4, 4, 2, 2};
};

[[gnu::noinline]] void run_bf16(const AttentionArgs& a, RowRange items) {
  VectorAttention<PairVectors, BF16>::run(a, items);
}

}  // namespace

void attention_f32(const AttentionArgs& a, RowRange items) noexcept { VectorAttention<Vectors, F32>::run(a, items); }
void attention_f16(const AttentionArgs& a, RowRange items) noexcept { VectorAttention<Vectors, F16>::run(a, items); }
void attention_i8(const AttentionArgs& a, RowRange items) noexcept { VectorAttention<Vectors, I8>::run(a, items); }
void attention_bf16(const AttentionArgs& a, RowRange items) noexcept {
  const FlushSubnormals flush;
  run_bf16(a, items);
}

}  // namespace headrace::avx512
