#include "ops/attention_kernels.h"
#include "ops/attention_products.h"
#include "ops/flush_subnormals.h"
#include "ops/round_bf16_avx2.h"
#include "ops/vector_math_avx2.h"

namespace headrace::avx2 {
namespace {

struct Vectors {
  using F = __m256;
  static constexpr int64_t kLanes = 8;
  static constexpr int kScoreVecs[kTilePairs + 1] = {0, 8, 4, 4, 2};  // 8 to 12 chains, of 16 registers
  static constexpr int kValueVecs[kTilePairs + 1] = {0, 8, 4, 4, 2};

  static F zero() { return _mm256_setzero_ps(); }
  static F set1(float x) { return _mm256_set1_ps(x); }
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static F load(const float* p, int64_t n) {
    return n >= kLanes ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first_lanes(n));
  }
  static void store(float* p, F x) { _mm256_storeu_ps(p, x); }
  static void store(float* p, F x, int64_t n) {
    n >= kLanes ? _mm256_storeu_ps(p, x) : _mm256_maskstore_ps(p, first_lanes(n), x);
  }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F exp(F x) { return exp_f32(x); }
  static float most(F x) {
    __m128 most4 = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    most4 = _mm_max_ps(most4, _mm_movehl_ps(most4, most4));
    return _mm_cvtss_f32(_mm_max_ss(most4, _mm_movehdup_ps(most4)));
  }
  static float lowest_lane(F x) { return _mm256_cvtss_f32(x); }
  static float sum16(const F (&chains)[2]) { return sum_lanes16(chains[0], chains[1]); }
};

/// The first n of eight elements of kBytes, with zeros after them, reading no more.
template <int kBytes>
__m128i load_bytes(const std::byte* p, int64_t n) {
  alignas(16) std::byte some[16] = {};
  for (int64_t i = 0; i < n * kBytes; ++i) some[i] = p[i];
  return _mm_load_si128(reinterpret_cast<const __m128i*>(some));
}

struct F32 {
  static constexpr bool kIsPaired = false, kHasScales = false, kDecodes = false, kFetches = true;
  static constexpr int64_t kBytes = 4;
  static __m256 load(const std::byte* p) { return _mm256_loadu_ps(reinterpret_cast<const float*>(p)); }
  static __m256 load(const std::byte* p, int64_t n) { return Vectors::load(reinterpret_cast<const float*>(p), n); }
  static __m256 query(__m256 q) { return q; }
  static __m256 weight(__m256 p) { return p; }
};
struct F16 : F32 {
  static constexpr bool kDecodes = true;
  static constexpr int64_t kBytes = 2;
  static __m256 load(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static __m256 load(const std::byte* p, int64_t n) {
    return n >= 8 ? load(p) : _mm256_cvtph_ps(load_bytes<kBytes>(p, n));
  }
};
struct I8 : F32 {
  static constexpr bool kHasScales = true, kDecodes = true;
  static constexpr int64_t kBytes = 1;
  static __m256 decode(__m128i codes) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)); }
  static __m256 load(const std::byte* p) { return decode(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
  static __m256 load(const std::byte* p, int64_t n) { return n >= 8 ? load(p) : decode(load_bytes<kBytes>(p, n)); }
  static __m256 key_scales(const KvLayout& layout, const Chunk& chunk, int64_t t) {
    return scales(chunk.keys[t / kBlockTokens] + kv_key_bytes(layout), t);
  }
  static __m256 value_scales(const KvLayout& layout, const Chunk& chunk, int64_t t) {
    return scales(chunk.values[t / kBlockTokens] + kv_value_bytes(layout), t);
  }
  static __m256 scales(const std::byte* of_block, int64_t t) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(of_block) + t % kBlockTokens);
  }
};
struct BF16 {
  static constexpr bool kIsPaired = true, kHasScales = false, kFetches = true;
  static constexpr int64_t kBytes = 4;
  static __m256i load(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static __m256 even(__m256i pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
  static __m256 odd(__m256i pairs) {
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
  }
  static __m256 query(__m256 q) { return even(round_lanes_bf16(q)); }
  static __m256 weight(__m256 p) { return even(round_lanes_bf16(p)); }
};
/// Two chains a vector: fewer vectors.
struct PairVectors : Vectors {
  static constexpr int kScoreVecs[kTilePairs + 1] = {0, 4, 2, 1, 1};
  static constexpr int kValueVecs[kTilePairs + 1] = {0, 4, 2, 1, 1};
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

}  // namespace headrace::avx2
