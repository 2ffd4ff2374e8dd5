#pragma once

#include "ops/op_table.h"

namespace headrace {

/// y[r][i] = a[r][i] + b[r][i]. f32 [rows, dim], contiguous; y may equal a or b. Items: rows.
struct AddArgs {
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;
  int64_t rows = 0;
  int64_t dim = 0;
};
using AddFn = void (*)(const AddArgs&, RowRange) noexcept;
extern const OpTable<AddFn> kAdd;

/// y[r][i] = silu(gate[r][i]) * up[r][i], silu(x) = x / (1 + exp(-x))                  (arXiv:2002.05202)
/// f32 [rows, dim]; y may equal gate or up. exp is that of vector_math.h. Items: rows.
struct SiluMulArgs {
  const float* gate = nullptr;
  const float* up = nullptr;
  float* y = nullptr;
  int64_t rows = 0;
  int64_t dim = 0;
};
using SiluMulFn = void (*)(const SiluMulArgs&, RowRange) noexcept;
extern const OpTable<SiluMulFn> kSiluMul;

/// y[i] = x[index[i]]: whole rows of dim f32, for the rows that are sampled. Items: rows (of y).
struct GatherRowsArgs {
  const float* x = nullptr;
  const int32_t* index = nullptr;
  float* y = nullptr;
  int64_t rows = 0;
  int64_t dim = 0;
};
using GatherRowsFn = void (*)(const GatherRowsArgs&, RowRange) noexcept;
extern const OpTable<GatherRowsFn> kGatherRows;

}  // namespace headrace
