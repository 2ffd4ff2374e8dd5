#pragma once

#include "ops/op_table.h"

namespace headrace {

/// Which values of a head are rotated together.
enum class RopeLayout : uint8_t {
  kHalfSplit,    ///< i and i + rotary_dim / 2 (Hugging Face, "neox")
  kInterleaved,  ///< 2 i and 2 i + 1 (GGUF files of the llama family)
};

/// Rotation angles of each row, once a step for all layers that share them:
/// cos_sin[r][0][i] = scale * cos(pos[r] * inv_freq[i]), cos_sin[r][1][i] = scale * sin(...), i < half.
/// positions: int32[rows]; inv_freq: f32[half]; cos_sin: f32 [rows, 2, half]. The product and the reduction are in
/// double, cos and sin our own (base/exact_math.h), so that every machine gives the same bits. Items: rows.
struct RopeTableArgs {
  const int32_t* positions = nullptr;
  const float* inv_freq = nullptr;
  float* cos_sin = nullptr;
  int64_t rows = 0;
  int64_t half = 0;
  float scale = 1.0f;
};
using RopeTableFn = void (*)(const RopeTableArgs&, RowRange) noexcept;
extern const OpTable<RopeTableFn> kRopeTable;

/// Rotates the first 2 * half values of every head in place (arXiv:2104.09864): a' = a cos - b sin, b' = b cos + a sin
/// for each pair (a, b) of the layout. x: f32 [rows, heads, head_dim]; cos_sin as above. Items: rows.
///
/// Recipe: a' = fma(a, cos, -(b * sin)); b' = fma(b, cos, a * sin).
struct RopeArgs {
  float* x = nullptr;
  const float* cos_sin = nullptr;
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t half = 0;
  RopeLayout layout = RopeLayout::kHalfSplit;
};
using RopeFn = void (*)(const RopeArgs&, RowRange) noexcept;
extern const OpTable<RopeFn> kRope;

}  // namespace headrace
