#pragma once

#include "ops/op_table.h"

namespace headrace {

/// y[r][i] = x[r][i] * (1 / sqrt(mean_i(x[r][i]^2) + eps)) * w[i]                      (arXiv:1910.07467)
/// x, y: f32 [rows, dim], contiguous rows; y may equal x, no other overlap. w: f32[dim]. eps > 0. Items: rows.
/// Recipe: the squares summed as "f32-lanes16" (matmul.h); mean = sum / dim; r = 1 / sqrt(mean + eps), correctly
/// rounded division and square root; y = (x * r) * w.
struct RmsNormArgs {
  const float* x = nullptr;
  const float* w = nullptr;
  float* y = nullptr;
  int64_t rows = 0;
  int64_t dim = 0;
  float eps = 0;
};
using RmsNormFn = void (*)(const RmsNormArgs&, RowRange) noexcept;
extern const OpTable<RmsNormFn> kRmsNorm;

}  // namespace headrace
