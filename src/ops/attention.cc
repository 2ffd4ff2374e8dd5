#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "ops/vector_math.h"

namespace headrace {

int64_t kv_block_bytes(const KvLayout& layout) noexcept {
  const int64_t elements = int64_t{layout.kv_heads} * kBlockTokens * (layout.head_dim + layout.v_head_dim);
  return elements * (layout.dtype == DType::kF16 ? 2 : 4);
}

namespace ref {

struct F32Element {
  using Bits = float;
  static float decode(float value) noexcept { return value; }
};
struct F16Element {
  using Bits = uint16_t;
  static float decode(uint16_t value) noexcept { return f16_to_f32(value); }
};

/// Keys and values of one row's context for one KV head.
template <class Element>
class Context {
 public:
  Context(const AttentionArgs& a, int64_t row, int64_t kv_head) noexcept
      : layout_(a.layout), table_(a.block_table + a.table_begin[row]), slab_(a.slab), kv_head_(kv_head) {}
  float key(int64_t token_pos, int64_t i) const noexcept {
    return at(token_pos, i * kBlockTokens + token_pos % kBlockTokens);
  }
  float value(int64_t token_pos, int64_t i) const noexcept {
    return at(token_pos, int64_t{layout_.head_dim} * kBlockTokens + token_pos % kBlockTokens * layout_.v_head_dim + i);
  }

 private:
  /// Element `index` of the KV head's part of the position's block.
  float at(int64_t token_pos, int64_t index) const noexcept {
    const int64_t head_elements = int64_t{layout_.head_dim + layout_.v_head_dim} * kBlockTokens;
    const std::byte* block = slab_ + table_[token_pos / kBlockTokens] * kv_block_bytes(layout_);
    typename Element::Bits bits;
    std::memcpy(&bits, block + (kv_head_ * head_elements + index) * static_cast<int64_t>(sizeof(bits)), sizeof(bits));
    return Element::decode(bits);
  }

  const KvLayout& layout_;
  const int32_t* table_;
  const std::byte* slab_;
  int64_t kv_head_;
};

/// One query head. out holds the sums of the chunks joined so far.
template <class Element>
static void attend(const AttentionArgs& a, const Context<Element>& context, int64_t pos, const float* q,
                   float* out) noexcept {
  const int64_t head_dim = a.layout.head_dim, v_head_dim = a.layout.v_head_dim;
  const int64_t first = a.window > 0 ? std::max<int64_t>(0, pos - a.window + 1) : 0;
  float joined_max = 0, joined_sum = 0;
  for (int64_t begin = first; begin <= pos;) {
    const int64_t end = std::min((begin / kAttentionChunk + 1) * kAttentionChunk, pos + 1);

    float p[kAttentionChunk];  // of position begin + j: first the score, then its exponential
    float max = -std::numeric_limits<float>::infinity();
    for (int64_t t = begin; t < end; ++t) {
      float dot = 0;
      for (int64_t i = 0; i < head_dim; ++i) dot = std::fma(q[i], context.key(t, i), dot);
      p[t - begin] = a.scale * dot;
      max = std::max(max, p[t - begin]);
    }
    float chains[16] = {};
    for (int64_t t = begin; t < end; ++t) {
      p[t - begin] = exp_f32(p[t - begin] - max);
      chains[t % 16] += p[t - begin];
    }
    const float sum = sum_lanes16(chains);

    const bool first_chunk = begin == first;
    const float new_max = first_chunk ? max : std::max(joined_max, max);
    const float old_factor = first_chunk ? 0.0f : exp_f32(joined_max - new_max);
    const float factor = first_chunk ? 1.0f : exp_f32(max - new_max);
    for (int64_t i = 0; i < v_head_dim; ++i) {
      float o = 0;
      for (int64_t t = begin; t < end; ++t) o = std::fma(p[t - begin], context.value(t, i), o);
      out[i] = first_chunk ? o : std::fma(out[i], old_factor, o * factor);
    }
    joined_sum = first_chunk ? sum : std::fma(joined_sum, old_factor, sum * factor);
    joined_max = new_max;
    begin = end;
  }
  for (int64_t i = 0; i < v_head_dim; ++i) out[i] /= joined_sum;
}

template <class Element>
static void attention(const AttentionArgs& a, RowRange items) noexcept {
  const int64_t group = a.heads / a.layout.kv_heads;
  for (int64_t item = items.begin; item < items.end; ++item) {
    const int64_t row = item / a.layout.kv_heads, kv_head = item % a.layout.kv_heads;
    const Context<Element> context(a, row, kv_head);
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      attend(a, context, a.positions[row], a.q + (row * a.heads + h) * a.layout.head_dim,
             a.out + (row * a.heads + h) * a.layout.v_head_dim);
    }
  }
}

static void attention_f32(const AttentionArgs& a, RowRange items) noexcept { attention<F32Element>(a, items); }
static void attention_f16(const AttentionArgs& a, RowRange items) noexcept { attention<F16Element>(a, items); }

}  // namespace ref

namespace avx2 {
void attention_f32(const AttentionArgs& a, RowRange items) noexcept;
void attention_f16(const AttentionArgs& a, RowRange items) noexcept;
}  // namespace avx2
namespace avx512 {
void attention_f32(const AttentionArgs& a, RowRange items) noexcept;
void attention_f16(const AttentionArgs& a, RowRange items) noexcept;
}  // namespace avx512

constinit const OpTable<AttentionFn> kAttentionF32{"attention_f32",
                                                   {{Isa::kRef, ref::attention_f32},
                                                    {Isa::kAvx2, HR_X86(avx2::attention_f32)},
                                                    {Isa::kAvx512, HR_X86(avx512::attention_f32)}}};
constinit const OpTable<AttentionFn> kAttentionF16{"attention_f16",
                                                   {{Isa::kRef, ref::attention_f16},
                                                    {Isa::kAvx2, HR_X86(avx2::attention_f16)},
                                                    {Isa::kAvx512, HR_X86(avx512::attention_f16)}}};

const OpTable<AttentionFn>& attention_table(DType kv_dtype) noexcept {
  return kv_dtype == DType::kF16 ? kAttentionF16 : kAttentionF32;
}

}  // namespace headrace
