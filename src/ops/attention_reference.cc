// The recipes of attention.h in plain C++.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "ops/attention_kernels.h"
#include "ops/flushed_math.h"
#include "ops/vector_math.h"

namespace headrace::ref {
namespace {

/// f32 arithmetic as it is, and with subnormals flushed.
struct Plain {
  static float fma(float a, float b, float c) noexcept { return std::fma(a, b, c); }
  static float mul(float a, float b) noexcept { return a * b; }
  static float add(float a, float b) noexcept { return a + b; }
  static float result(float v) noexcept { return v; }
};
struct Flushing {
  static float fma(float a, float b, float c) noexcept { return fma_flushed(a, b, c); }
  static float mul(float a, float b) noexcept { return mul_flushed(a, b); }
  static float add(float a, float b) noexcept { return add_flushed(a, b); }
  static float result(float v) noexcept { return flushed(v); }
};

struct F32 : Plain {
  using Bits = float;
  static constexpr int64_t kGroupComponents = kMaxHeadDim;  // one chain over all
  static constexpr int64_t kGroupPositions = kAttentionChunk;
  static constexpr bool kPairs = false;
  static float decode(float value) noexcept { return value; }
  static float operand(float value) noexcept { return value; }
};
struct F16 : F32 {
  using Bits = uint16_t;
  static float decode(uint16_t value) noexcept { return f16_to_f32(value); }
};
struct I8 : F32 {
  using Bits = int8_t;
  static float decode(int8_t value) noexcept { return value; }
};
struct BF16 : Flushing {
  using Bits = uint16_t;
  static constexpr int64_t kGroupComponents = 32;
  static constexpr int64_t kGroupPositions = kBlockTokens;
  static constexpr bool kPairs = true;
  static float decode(uint16_t value) noexcept { return bf16_to_f32(value); }
  static float operand(float value) noexcept { return bf16_to_f32(f32_to_bf16(flushed(value))); }
};

/// Keys and values of one row's context for one KV head.
template <class Type>
class Context {
 public:
  Context(const AttentionArgs& a, int64_t row, int64_t kv_head) noexcept
      : layout_(a.layout),
        table_(a.block_table + a.table_begin[row]),
        slab_(a.slab + kv_head * kv_head_bytes(a.layout)) {}
  float key(int64_t t, int64_t i) const noexcept {
    return element(keys(t), kv_key_index(layout_, t % kBlockTokens, i));
  }
  float value(int64_t t, int64_t i) const noexcept {
    return element(values(t), kv_value_index(layout_, t % kBlockTokens, i));
  }
  float key_scale(int64_t t) const noexcept { return scale(keys(t) + kv_key_bytes(layout_), t); }
  float value_scale(int64_t t) const noexcept { return scale(values(t) + kv_value_bytes(layout_), t); }

 private:
  const std::byte* keys(int64_t t) const noexcept { return slab_ + table_[t / kBlockTokens] * kv_block_bytes(layout_); }
  const std::byte* values(int64_t t) const noexcept { return keys(t) + kv_value_offset(layout_); }
  static float element(const std::byte* part, int64_t index) noexcept {
    typename Type::Bits bits;
    std::memcpy(&bits, part + index * static_cast<int64_t>(sizeof(bits)), sizeof(bits));
    return Type::decode(bits);
  }
  static float scale(const std::byte* scales, int64_t t) noexcept {
    float value;
    std::memcpy(&value, scales + t % kBlockTokens * 4, sizeof(value));
    return value;
  }

  const KvLayout& layout_;
  const int32_t* table_;
  const std::byte* slab_;
};

/// sum of a(j) * b(j) over j in [begin, end), by the recipe: groups are cut at multiples of `group`.
template <class Type, class A, class B>
float dot(int64_t begin, int64_t end, int64_t group, const A& a, const B& b) noexcept {
  float sum = 0;
  for (int64_t j = begin; j < end;) {
    const int64_t group_end = std::min((j / group + 1) * group, end);
    float chains[2] = {Type::kPairs ? 0.0f : sum, 0.0f};
    for (; j < group_end; ++j) {
      float& chain = chains[Type::kPairs ? j % 2 : 0];
      chain = Type::fma(a(j), b(j), chain);
    }
    sum = Type::kPairs ? Type::add(sum, Type::add(chains[0], chains[1])) : chains[0];
  }
  return sum;
}

/// One query head. out holds the sums of the chunks joined so far.
template <class Type>
void attend(const AttentionArgs& a, const Context<Type>& context, int64_t pos, const float* q, float* out) noexcept {
  constexpr bool kScaled = std::is_same_v<Type, I8>;
  const int64_t head_dim = a.layout.head_dim, v_head_dim = a.layout.v_head_dim;
  const int64_t first = a.window > 0 ? std::max<int64_t>(0, pos - a.window + 1) : 0;
  float joined_max = 0, joined_sum = 0;
  for (int64_t begin = first; begin <= pos;) {
    const int64_t end = std::min((begin / kAttentionChunk + 1) * kAttentionChunk, pos + 1);

    float p[kAttentionChunk];  // of position begin + j: first the score, then its exponential
    float max = -std::numeric_limits<float>::infinity();
    for (int64_t t = begin; t < end; ++t) {
      float s = dot<Type>(
          0, head_dim, Type::kGroupComponents, [&](int64_t i) { return Type::operand(q[i]); },
          [&](int64_t i) { return context.key(t, i); });
      if (kScaled) s = s * context.key_scale(t);
      p[t - begin] = Type::mul(a.scale, s);
      max = std::max(max, p[t - begin]);
    }
    float chains[16] = {};
    for (int64_t t = begin; t < end; ++t) {
      p[t - begin] = exp_f32(Type::add(p[t - begin], -max));
      chains[t % 16] += p[t - begin];
      if (kScaled) p[t - begin] *= context.value_scale(t);
    }
    const float sum = sum_lanes16(chains);

    const bool first_chunk = begin == first;
    const float new_max = first_chunk ? max : std::max(joined_max, max);
    const float old_factor = first_chunk ? 0.0f : exp_f32(joined_max - new_max);
    const float factor = first_chunk ? 1.0f : exp_f32(max - new_max);
    for (int64_t i = 0; i < v_head_dim; ++i) {
      const float o = dot<Type>(
          begin, end, Type::kGroupPositions, [&](int64_t t) { return Type::operand(p[t - begin]); },
          [&](int64_t t) { return context.value(t, i); });
      out[i] = first_chunk ? o : Type::fma(out[i], old_factor, Type::mul(o, factor));
    }
    joined_sum = first_chunk ? sum : std::fma(joined_sum, old_factor, sum * factor);
    joined_max = new_max;
    begin = end;
  }
  for (int64_t i = 0; i < v_head_dim; ++i) out[i] = Type::result(out[i] / joined_sum) + 0.0f;
}

template <class Type>
void attention(const AttentionArgs& a, RowRange items) noexcept {
  const int64_t group = a.heads / a.layout.kv_heads;
  for (int64_t item = items.begin; item < items.end; ++item) {
    const int64_t kv_head = item / a.rows, row = a.rows - 1 - item % a.rows;
    const Context<Type> context(a, row, kv_head);
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      attend(a, context, a.positions[row], a.q + (row * a.heads + h) * a.layout.head_dim,
             a.out + (row * a.heads + h) * a.layout.v_head_dim);
    }
  }
}

}  // namespace

void attention_f32(const AttentionArgs& a, RowRange items) noexcept { attention<F32>(a, items); }
void attention_f16(const AttentionArgs& a, RowRange items) noexcept { attention<F16>(a, items); }
void attention_bf16(const AttentionArgs& a, RowRange items) noexcept { attention<BF16>(a, items); }
void attention_i8(const AttentionArgs& a, RowRange items) noexcept { attention<I8>(a, items); }

}  // namespace headrace::ref
