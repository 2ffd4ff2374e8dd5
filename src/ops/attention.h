#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "ops/kv_layout.h"
#include "ops/op_table.h"

namespace headrace {

/// Writes the keys and values of each row to its slot. k: f32 [rows, kv_heads, head_dim]; v: f32 [rows, kv_heads,
/// v_head_dim]; slots: int32[rows], block id * 16 + place in the block. Items: rows; different rows have different
/// slots.
///   kF16   rounds to nearest even.
///   kBF16  rounds by recipe "bf16 v1" (round_bf16.h).
///   kI8    one scale for a token's key of a head, one for its value: m = max |x|; scale = m / 127, the codes are
///          x * (127 / m) rounded to nearest even, each operation rounded to f32. Below m = 2^-100 all are 0; where a
///          component is not finite the scale is NaN and the codes are 0.
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
/// of row r is block_table[table_begin[r] + t / 16]; entries before the window are not read. No other place of the
/// cache influences the result, whatever it holds (NaN too); a NaN among the row's own keys gives NaN in that head.
/// Items: (kv head, row) pairs, item = kv head * rows + (rows - 1 - row): of a prompt, late rows, which see most, come
/// first. Rows of a range that follow each other in one sequence (same table_begin, next position) may be computed
/// together.
///
/// Recipe "online512 v2". The context is cut at multiples of 512 positions. In each chunk, over its visible positions:
///   s[t] = scale * dot, dot one chain of fused multiply-adds from 0 over the components in order;
///   m = max s;  p[t] = exp(s[t] - m) (vector_math.h);  l = sum of p over 16 chains (t mod 16), joined by the tree of
///   matmul.h; o[i] = one chain fma(p[t], v[t][i], o[i]) over t in order.
/// Chunks are joined in order: M' = max(M, m); a = exp(M - M'), b = exp(m - M'); L = fma(L, a, l * b); O = fma(O, a, o
/// * b); the first visible chunk is taken as it is. out = O / L + 0, so that no zero is negative. (arXiv:1805.02867)
/// With kI8, k and v above are the codes as f32, s[t] = scale * (dot * key scale[t]), and o takes p[t] * value scale[t]
/// in the place of p[t]; each product is rounded.
///
/// Recipe "online512-bf16 v1" (kBF16). As above, but subnormals are zero in all operands and results, q is rounded by
/// "bf16 v1", and so is p where it meets v. Products of pairs, as AMX tiles make them: dot is 0, to which each 32
/// components in order add (even + odd), two chains of fused multiply-adds from 0 over their even and odd components;
/// o[i] is 0, to which each 16 positions (a block) in order add (even + odd), chains over their even and odd visible
/// positions.
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
/// Names and versions of the recipes above.
inline constexpr std::array<std::string_view, 2> kAttentionRecipes = {"online512 v2", "online512-bf16 v1"};
using AttentionFn = void (*)(const AttentionArgs&, RowRange) noexcept;
extern const OpTable<AttentionFn> kAttentionF32;
extern const OpTable<AttentionFn> kAttentionF16;
extern const OpTable<AttentionFn> kAttentionBF16;
extern const OpTable<AttentionFn> kAttentionI8;
/// The table for a cache type: one of kKvDTypes.
[[nodiscard]] const OpTable<AttentionFn>& attention_table(DType kv_dtype) noexcept;

}  // namespace headrace
