#include "ops/attention.h"
#include "ops/round_bf16_avx2.h"
#include "ops/vector_math_avx2.h"

namespace headrace::avx2 {
namespace {

constexpr int64_t kLanes = 8;

int64_t lanes_from(int64_t i, int64_t n) { return n - i < kLanes ? n - i : kLanes; }

__m256 load(const float* x, int64_t n) {
  return n >= kLanes ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, first_lanes(n));
}

__m128i low_halves(__m256i lanes) {
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(lanes, lanes), 0x08));
}

/// Elements of a cache type, in the place of up to eight values.
struct F32 {
  using Bits = float;
  void prepare(const float*, int64_t) {}
  void round(__m256 x, Bits* out) const { _mm256_store_ps(out, x); }
};
struct F16 {
  using Bits = uint16_t;
  void prepare(const float*, int64_t) {}
  void round(__m256 x, Bits* out) const {
    const __m128i half = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_store_si128(reinterpret_cast<__m128i*>(out), half);
  }
};
struct BF16 {
  using Bits = uint16_t;
  void prepare(const float*, int64_t) {}
  void round(__m256 x, Bits* out) const {
    _mm_store_si128(reinterpret_cast<__m128i*>(out), low_halves(round_lanes_bf16(x)));
  }
};
struct I8 {
  using Bits = int8_t;
  float scale = 0;
  float inverse = 0;
  /// Magnitudes are compared as integers: NaN is above infinity, which is above all others.
  void prepare(const float* x, int64_t n) {
    __m256i most8 = _mm256_setzero_si256();
    for (int64_t i = 0; i < n; i += kLanes) {
      const __m256i bits = _mm256_castps_si256(load(x + i, n - i));
      most8 = _mm256_max_epi32(most8, _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff)));
    }
    __m128i most4 = _mm_max_epi32(_mm256_castsi256_si128(most8), _mm256_extracti128_si256(most8, 1));
    most4 = _mm_max_epi32(most4, _mm_shuffle_epi32(most4, 0x4e));
    most4 = _mm_max_epi32(most4, _mm_shuffle_epi32(most4, 0xb1));
    const float most = _mm_cvtss_f32(_mm_castsi128_ps(most4));
    const bool is_finite = _mm_cvtsi128_si32(most4) < 0x7f800000;
    inverse = is_finite && most >= 0x1p-100f ? 127.0f / most : 0.0f;
    scale = !is_finite ? __builtin_nanf("") : inverse == 0 ? 0.0f : most / 127.0f;
  }
  void round(__m256 x, Bits* out) const {
    __m256i codes = _mm256_cvtps_epi32(_mm256_mul_ps(x, _mm256_set1_ps(inverse)));
    if (inverse == 0) codes = _mm256_setzero_si256();
    const __m256i words = _mm256_packs_epi32(codes, codes);
    const __m256i bytes = _mm256_packs_epi16(words, words);  // four of each half, again and again
    const __m128i eight = _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), eight);
  }
};

/// Values to out, out + stride, ...
template <class Element>
void scatter(const Element& element, const float* x, int64_t n, typename Element::Bits* out, int64_t stride) {
  for (int64_t i = 0; i < n; i += kLanes) {
    alignas(32) typename Element::Bits rounded[kLanes];
    element.round(load(x + i, n - i), rounded);
    const int64_t count = lanes_from(i, n);
    for (int64_t j = 0; j < count; ++j) out[(i + j) * stride] = rounded[j];
  }
}
/// Pairs of values to out, out + stride, ...; where n is odd, the last with a zero.
void scatter_pairs(const BF16& element, const float* x, int64_t n, uint32_t* out, int64_t stride) {
  for (int64_t i = 0; i < n; i += kLanes) {
    alignas(16) uint16_t rounded[kLanes];
    element.round(load(x + i, n - i), rounded);
    const int64_t count = lanes_from(i, n);
    for (int64_t j = 0; j < count; j += 2) {
      out[(i + j) / 2 * stride] = rounded[j] | static_cast<uint32_t>(rounded[j + 1]) << 16;
    }
  }
}

template <class Element>
void write_rows(const KvWriteArgs& a, RowRange rows) {
  using Bits = typename Element::Bits;
  constexpr bool kIsPairs = __is_same(Element, BF16);
  const KvLayout& layout = a.layout;
  const int64_t head_dim = layout.head_dim, v_head_dim = layout.v_head_dim, kv_heads = layout.kv_heads;
  const int64_t head_bytes = kv_head_bytes(layout), value_offset = kv_value_offset(layout);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t place = a.slots[r] % kBlockTokens;
    std::byte* block = a.slab + a.slots[r] / kBlockTokens * (kv_heads * head_bytes);
    for (int64_t g = 0; g < kv_heads; ++g) {
      std::byte* keys = block + g * head_bytes;
      std::byte* values = keys + value_offset;
      const float* k = a.k + (r * kv_heads + g) * head_dim;
      const float* v = a.v + (r * kv_heads + g) * v_head_dim;
      Element key, value;
      key.prepare(k, head_dim);
      value.prepare(v, v_head_dim);
      if constexpr (kIsPairs) {
        scatter_pairs(key, k, head_dim, reinterpret_cast<uint32_t*>(keys) + place, kBlockTokens);
      } else {
        scatter(key, k, head_dim, reinterpret_cast<Bits*>(keys) + place, kBlockTokens);
      }
      Bits* to = reinterpret_cast<Bits*>(values) + kv_value_index(layout, place, 0);
      scatter(value, v, v_head_dim, to, kIsPairs ? 2 : 1);
      if constexpr (__is_same(Element, I8)) {
        reinterpret_cast<float*>(keys + kv_key_bytes(layout))[place] = key.scale;
        reinterpret_cast<float*>(values + kv_value_bytes(layout))[place] = value.scale;
      }
    }
  }
}

}  // namespace

void kv_write(const KvWriteArgs& a, RowRange rows) noexcept {
  switch (a.layout.dtype) {
    case DType::kF32:
      return write_rows<F32>(a, rows);
    case DType::kBF16:
      return write_rows<BF16>(a, rows);
    case DType::kI8:
      return write_rows<I8>(a, rows);
    default:
      return write_rows<F16>(a, rows);
  }
}

}  // namespace headrace::avx2
