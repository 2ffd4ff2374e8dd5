#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "ops/attention.h"
#include "ops/flushed_math.h"

namespace headrace {

namespace ref {

template <class Element>
static void put(std::byte* part, int64_t index, Element value) noexcept {
  std::memcpy(part + index * static_cast<int64_t>(sizeof(value)), &value, sizeof(value));
}

/// scale and 1 / scale of n components: attention.h.
static float code_scale(const float* x, int64_t n, float& inverse) noexcept {
  float most = 0;
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    finite = finite && std::isfinite(x[i]);
    most = std::max(most, std::fabs(x[i]));
  }
  inverse = finite && most >= 0x1p-100f ? 127.0f / most : 0.0f;
  return finite ? (inverse == 0 ? 0.0f : most / 127.0f) : std::numeric_limits<float>::quiet_NaN();
}

/// n components of one token's key or value; index(i) is the element of component i, `scales` the part's 16 scales.
template <class Index>
static void write_part(DType dtype, const float* x, int64_t n, int64_t place, std::byte* part, std::byte* scales,
                       const Index& index) noexcept {
  float inverse = 0;
  if (dtype == DType::kI8) put(scales, place, code_scale(x, n, inverse));
  for (int64_t i = 0; i < n; ++i) {
    switch (dtype) {
      case DType::kF32:
        put(part, index(i), x[i]);
        break;
      case DType::kBF16:
        put(part, index(i), f32_to_bf16(flushed(x[i])));
        break;
      case DType::kI8:
        put(part, index(i), static_cast<int8_t>(inverse == 0 ? 0.0f : std::nearbyint(x[i] * inverse)));
        break;
      default:
        put(part, index(i), f32_to_f16(x[i]));
        break;
    }
  }
}

static void kv_write(const KvWriteArgs& a, RowRange rows) noexcept {
  const KvLayout& layout = a.layout;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t place = a.slots[r] % kBlockTokens;
    for (int64_t g = 0; g < layout.kv_heads; ++g) {
      std::byte* keys = a.slab + a.slots[r] / kBlockTokens * kv_block_bytes(layout) + g * kv_head_bytes(layout);
      std::byte* values = keys + kv_value_offset(layout);
      write_part(layout.dtype, a.k + (r * layout.kv_heads + g) * layout.head_dim, layout.head_dim, place, keys,
                 keys + kv_key_bytes(layout), [&](int64_t i) { return kv_key_index(layout, place, i); });
      if (layout.dtype == DType::kBF16 && layout.head_dim % 2 == 1) {
        put(keys, kv_key_index(layout, place, layout.head_dim), uint16_t{0});
      }
      write_part(layout.dtype, a.v + (r * layout.kv_heads + g) * layout.v_head_dim, layout.v_head_dim, place, values,
                 values + kv_value_bytes(layout), [&](int64_t i) { return kv_value_index(layout, place, i); });
    }
  }
}

}  // namespace ref

namespace avx2 {
void kv_write(const KvWriteArgs& a, RowRange rows) noexcept;
}

// Mostly a scatter of single elements: AVX-512 has nothing to add.
constinit const OpTable<KvWriteFn> kKvWrite{"kv_write",
                                            {{Isa::kRef, ref::kv_write}, {Isa::kAvx2, HR_X86(avx2::kv_write)}}};

}  // namespace headrace
