#pragma once

#include <cstddef>

#include "ops/op_table.h"
#include "tensor/dtype.h"

namespace headrace {

/// Tokens in a block of the KV cache.
inline constexpr int32_t kBlockTokens = 16;

/// One layer's slab of the KV cache: blocks one after the other, indexed by block id. A block, for each KV head in
/// turn:
///   K  [head_dim][16 tokens]   transposed, so that a vector holds the same component of 16 tokens
///   V  [16 tokens][v_head_dim]
/// in elements of `dtype`: kF32 or kF16. Each part is a multiple of 16 elements long.
struct KvLayout {
  DType dtype = DType::kF16;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t v_head_dim = 0;
};
[[nodiscard]] int64_t kv_block_bytes(const KvLayout& layout) noexcept;

/// Writes the keys and values of each row to its slot. k: f32 [rows, kv_heads, head_dim]; v: f32 [rows, kv_heads,
/// v_head_dim]; slots: int32[rows], block id * 16 + place in the block. f16 rounds to nearest even. Items: rows;
/// different rows have different slots.
struct KvWriteArgs {
  KvLayout layout;
  const float* k = nullptr;
  const float* v = nullptr;
  const int32_t* slots = nullptr;
  std::byte* slab = nullptr;
  int64_t rows = 0;
};
using KvWriteFn = void (*)(const KvWriteArgs&, RowRange) noexcept;
extern const OpTable<KvWriteFn> kKvWrite;

/// Positions at whose multiples attention cuts the context.
inline constexpr int64_t kAttentionChunk = 512;

/// out[r][h] = softmax_t(scale * q[r][h] . k[t][g]) . v[t][g], g = h / (heads / kv_heads), over the positions
/// t in [first, pos[r]], first = window > 0 ? max(0, pos[r] - window + 1) : 0. Keys and values of a row's own step must
/// have been written before.
/// q: f32 [rows, heads, head_dim]; out: f32 [rows, heads, v_head_dim]. positions: int32[rows]. The block of position t
/// of row r is block_table[table_begin[r] + t / 16]; entries before the window are not read. Items: (row, kv head)
/// pairs, item = row * kv_heads + kv head. No other place of the cache influences the result, whatever it holds (NaN
/// too); a NaN among the row's own keys gives NaN in that head.
///
/// Recipe "online512 v1". The context is cut at multiples of 512 positions. In each chunk, over its visible positions:
///   s[t] = scale * dot, dot one chain of fused multiply-adds from 0 over the components in order;
///   m = max s;  p[t] = exp(s[t] - m) (vector_math.h);  l = sum of p over 16 chains (t mod 16), joined by the tree of
///   matmul.h; o[i] = one chain fma(p[t], v[t][i], o[i]) over t in order.
/// Chunks are joined in order: M' = max(M, m); a = exp(M - M'), b = exp(m - M'); L = fma(L, a, l * b); O = fma(O, a, o
/// * b); the first visible chunk is taken as it is. out = O / L. (arXiv:1805.02867)
struct AttentionArgs {
  KvLayout layout;
  const float* q = nullptr;
  const std::byte* slab = nullptr;
  const int32_t* block_table = nullptr;
  const int32_t* table_begin = nullptr;
  const int32_t* positions = nullptr;
  float* out = nullptr;
  int64_t rows = 0;
  int32_t heads = 0;
  int32_t window = 0;
  float scale = 1.0f;
};
using AttentionFn = void (*)(const AttentionArgs&, RowRange) noexcept;
extern const OpTable<AttentionFn> kAttentionF32;
extern const OpTable<AttentionFn> kAttentionF16;
/// The table for a cache type.
[[nodiscard]] const OpTable<AttentionFn>& attention_table(DType kv_dtype) noexcept;

}  // namespace headrace
