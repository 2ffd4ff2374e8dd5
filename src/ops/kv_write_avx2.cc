#include "ops/attention.h"
#include "ops/vector_math_avx2.h"

namespace headrace::avx2 {

/// 8 values, of which the first n count, as f16.
static __m128i to_half(const float* x, int64_t n) noexcept {
  const __m256 v = n >= 8 ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, first_lanes(n));
  return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/// Values at out, out + stride, ...
static void scatter_half(const float* x, int64_t n, uint16_t* out, int64_t stride) noexcept {
  for (int64_t i = 0; i < n; i += 8) {
    alignas(16) uint16_t half[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(half), to_half(x + i, n - i));
    const int64_t count = n - i < 8 ? n - i : 8;
    for (int64_t j = 0; j < count; ++j) out[(i + j) * stride] = half[j];
  }
}

static void scatter_float(const float* x, int64_t n, float* out, int64_t stride) noexcept {
  for (int64_t i = 0; i < n; ++i) out[i * stride] = x[i];
}

void kv_write(const KvWriteArgs& a, RowRange rows) noexcept {
  const bool half = a.layout.dtype == DType::kF16;
  const int64_t size = half ? 2 : 4;
  const int64_t head_dim = a.layout.head_dim, v_head_dim = a.layout.v_head_dim, kv_heads = a.layout.kv_heads;
  const int64_t head_bytes = (head_dim + v_head_dim) * kBlockTokens * size;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t place = a.slots[r] % kBlockTokens;
    std::byte* block = a.slab + a.slots[r] / kBlockTokens * (kv_heads * head_bytes);
    for (int64_t g = 0; g < kv_heads; ++g) {
      std::byte* keys = block + g * head_bytes + place * size;
      std::byte* values = block + g * head_bytes + (head_dim * kBlockTokens + place * v_head_dim) * size;
      const float* k = a.k + (r * kv_heads + g) * head_dim;
      const float* v = a.v + (r * kv_heads + g) * v_head_dim;
      if (half) {
        scatter_half(k, head_dim, reinterpret_cast<uint16_t*>(keys), kBlockTokens);
        int64_t i = 0;
        for (; i + 8 <= v_head_dim; i += 8) {
          _mm_storeu_si128(reinterpret_cast<__m128i*>(values + i * 2), to_half(v + i, 8));
        }
        scatter_half(v + i, v_head_dim - i, reinterpret_cast<uint16_t*>(values) + i, 1);
      } else {
        scatter_float(k, head_dim, reinterpret_cast<float*>(keys), kBlockTokens);
        scatter_float(v, v_head_dim, reinterpret_cast<float*>(values), 1);
      }
    }
  }
}

}  // namespace headrace::avx2
