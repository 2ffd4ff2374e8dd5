#pragma once

#include "base/ids.h"
#include "ops/op_table.h"
#include "ops/weight_layout.h"

namespace headrace {

/// y[r] = scale * table[tokens[r]], decoded to f32. table: [vocab, dim] in any layout (n = vocab, k = dim).
/// tokens: int32[rows], each in [0, vocab). y: f32 [rows, dim]. Items: rows.
struct EmbedArgs {
  WeightView table;
  const TokenId* tokens = nullptr;
  float* y = nullptr;
  int64_t rows = 0;
  float scale = 1.0f;
};
using EmbedFn = void (*)(const EmbedArgs&, RowRange) noexcept;
extern const OpTable<EmbedFn> kEmbed;

}  // namespace headrace
