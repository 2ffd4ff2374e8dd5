#include <cstring>

#include "base/half.h"
#include "ops/attention.h"

namespace headrace {

namespace ref {

static void store(float value, std::byte* out, float*) noexcept { std::memcpy(out, &value, sizeof(value)); }
static void store(float value, std::byte* out, uint16_t*) noexcept {
  const uint16_t half = f32_to_f16(value);
  std::memcpy(out, &half, sizeof(half));
}

template <class Element>
static void write_rows(const KvWriteArgs& a, RowRange rows) noexcept {
  constexpr auto kSize = static_cast<int64_t>(sizeof(Element));
  const int64_t head_dim = a.layout.head_dim, v_head_dim = a.layout.v_head_dim, kv_heads = a.layout.kv_heads;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t place = a.slots[r] % kBlockTokens;
    std::byte* block = a.slab + a.slots[r] / kBlockTokens * kv_block_bytes(a.layout);
    for (int64_t g = 0; g < kv_heads; ++g) {
      std::byte* keys = block + g * (head_dim + v_head_dim) * kBlockTokens * kSize;
      std::byte* values = keys + head_dim * kBlockTokens * kSize;
      const float* k = a.k + (r * kv_heads + g) * head_dim;
      const float* v = a.v + (r * kv_heads + g) * v_head_dim;
      for (int64_t i = 0; i < head_dim; ++i) {
        store(k[i], keys + (i * kBlockTokens + place) * kSize, static_cast<Element*>(nullptr));
      }
      for (int64_t i = 0; i < v_head_dim; ++i) {
        store(v[i], values + (place * v_head_dim + i) * kSize, static_cast<Element*>(nullptr));
      }
    }
  }
}

static void kv_write(const KvWriteArgs& a, RowRange rows) noexcept {
  a.layout.dtype == DType::kF16 ? write_rows<uint16_t>(a, rows) : write_rows<float>(a, rows);
}

}  // namespace ref

namespace avx2 {
void kv_write(const KvWriteArgs& a, RowRange rows) noexcept;
}

// Mostly a scatter of single elements: AVX-512 has nothing to add.
constinit const OpTable<KvWriteFn> kKvWrite{"kv_write",
                                            {{Isa::kRef, ref::kv_write}, {Isa::kAvx2, HR_X86(avx2::kv_write)}}};

}  // namespace headrace
