#pragma once

#include "ops/activation.h"
#include "ops/op_table.h"
#include "ops/weight_layout.h"

namespace headrace {

/// y[r][j] = sum_i x[r][i] * w[j][i] + bias[j]. x: rows in the form that the weights' recipe names. y: f32, row r at
/// y + r * y_stride (y_stride >= w.n); columns beyond w.n are not written. bias: f32[n] or null; added last.
/// Items: groups of kNeuronGroup output neurons.
///
/// Recipe "f32-lanes16 v1" (layout kRows, kF32): weights decoded to f32 exactly as the format's reference decoder does;
/// 16 chains of fused multiply-adds from 0 (chain c takes i = c, c + 16, ... in order; a ragged tail goes on in the
/// first chains), joined by the tree (c, c + 8), (c, c + 4), (c, c + 2), (c, c + 1).
///
/// Recipe "q8x32 v1" (kInterleaved16, kQ8x32; Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 IQ4_NL): acc = 0; for each 32-block in order,
/// with the codes q of the weights, d and m as in quant/format.h, a the activations' scale:
///   isum = sum q * x (exact int32);  acc = fma(d * a, f32(isum), acc);
///   formats with m: acc = fma(m, a * f32(sum of the x), acc), after it.
///
/// Recipe "q8x256 v1" (kInterleaved16, kQ8x256; Q2_K to Q6_K, IQ4_XS): for each super-block in order
///   isum = sum_s scale_s * (sum over sub-block s of q * x), exact int32;  acc = fma(d * a, f32(isum), acc);
///   formats with mins: msum = sum_s min_s * (sum of x in s), exact;  acc = fma(-(dmin * a), f32(msum), acc), after it.
///
/// Recipe "r8x256 v1" (kRequant16, kQ8x256Twice; the types of both): weights become w8 * r, an int8 and one scale for a
/// unit of 256 k (requant.h). For each unit in order
///   isum = sum w8 * x, exact int32;  acc = fma(r * a, f32(isum), acc).
///
/// The int8 recipes then take the row's outliers (activation.h) in order: acc = fma(w, x, acc), with the type's own
/// weight w = d * q + m (d * q in formats without m) or w = (d * scale) * q - dmin * min ((d * scale) * q in formats
/// without mins), each operation rounded.
///
/// Recipe "bf16x32 v1" (kBf16Pairs16, kBf16; BF16, and F16 whose weights are then rounded to bf16): acc = +0; for each
/// 32 values of k in order, zeros after the last:
///   even = +0; for i = 0, 2, ... 30: even = fma(x[i], w[i], even);   odd: the same over i = 1, 3, ... 31;
///   acc = acc + (even + odd).
/// Every operation rounds to nearest even, takes subnormal operands as zeros and gives zero of the same sign for what,
/// rounded to 24 bits, is below the least normal number: as TDPBF16PS, whose chain over tiles this is, and vectors with
/// DAZ and FTZ. The bias is added in the same way. A result that is no number is the NaN 0x7fc00000.
struct MatmulArgs {
  ActView x;
  WeightView w;
  const float* bias = nullptr;
  float* y = nullptr;
  int64_t y_stride = 0;
};
using MatmulFn = void (*)(const MatmulArgs&, RowRange) noexcept;

/// The candidates for weights of `dtype` in `layout`; nullptr where there are none.
[[nodiscard]] const OpTable<MatmulFn>* matmul_table(DType dtype, WeightLayout layout) noexcept;

}  // namespace headrace
