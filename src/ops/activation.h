#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ops/op_table.h"

namespace headrace {

/// How a product reads its activations.
enum class ActForm : uint8_t {
  kF32,          ///< as they are
  kQ8x32,        ///< int8 with one f32 scale per 32 values
  kQ8x256,       ///< int8 with one f32 scale per 256 values, the last block shorter where k is no multiple of 256
  kBf16,         ///< rounded to bf16
  kQ8x256Twice,  ///< kQ8x256, its outliers found in two rounds
};
inline constexpr int kNumActForms = 5;
/// Those that are rounded: quantize_table has a table for each.
inline constexpr std::array kRoundedActForms{ActForm::kQ8x32, ActForm::kQ8x256, ActForm::kBf16, ActForm::kQ8x256Twice};
[[nodiscard]] std::string_view act_form_name(ActForm form) noexcept;

/// Rows of activations in one form. A row of k values is one record of act_row_bytes(form, k) bytes:
///   kF32     f32 x[k], so that any contiguous f32 matrix is one
///   kQ8x32   int8 q[k] | f32 scale[k / 32] | int16 sum[k / 32] | outliers    sum: of the 32 q's;   k % 32 == 0
///   kQ8x256  int8 q[k] | f32 scale[ceil(k / 256)] | int16 sum[k / 16] | outliers  sum: of the 16 q's;  k % 32 == 0
///   kQ8x256Twice  as kQ8x256
///   kBf16    bf16 x[k] | zeros, at least to a multiple of 32 values, and to an odd number of 64-byte lines, so that
///            rows do not meet in one set of the L1 cache
/// In the rounded forms `data` is 64-byte aligned. In the quantised ones each part begins at a multiple of 64 bytes
/// with zeros before it, and every q lies in [-127, 127]: the products' bounds rest on it. Outliers: int32 count |
/// int32 0 | then `count` times int32 i | f32 x[i], i rising; what follows them is not written.
struct ActView {
  ActForm form = ActForm::kF32;
  std::byte* data = nullptr;
  int64_t rows = 0;
  int64_t k = 0;
};
[[nodiscard]] int64_t act_row_bytes(ActForm form, int64_t k) noexcept;
/// Where scale and sum begin inside a record (quantised forms).
[[nodiscard]] int64_t act_scale_offset(ActForm form, int64_t k) noexcept;
[[nodiscard]] int64_t act_sum_offset(ActForm form, int64_t k) noexcept;
[[nodiscard]] int64_t act_outlier_offset(ActForm form, int64_t k) noexcept;

/// A value that is kept out of the integers of its block.
struct Outlier {
  int32_t i;
  float x;
};
inline constexpr int64_t kOutlierHeadBytes = 8;
/// Values of a block above this many times its mean magnitude are outliers: at most block / kOutlierFactor of them in
/// each round.
/// A few channels of a trained model are tens of times larger than their neighbours; left in, they decide the step of
/// the whole block. SmolLM2 Q4_1, mean KL from the float32 golden: 0.0025 without, 0.0007 with factor 8 (0.4 % of the
/// values are outliers), 0.0003 with factor 4 (1.9 %); blocks of 192 in place of 32: 0.0107 without, 0.0012 with 8.
inline constexpr int32_t kOutlierFactor = 8;

/// Name and version of the recipe below.
inline constexpr std::string_view kActivationRecipe = "q8 v1";

/// Rounds f32 rows to a quantised form. Items: rows.
/// Recipe "q8 v1", for each block of B values, 32 or 256 (of kQ8x256 the last one what is left):
///   sum = |x| over 16 chains (i mod 16, each from 0, in order), joined by the tree of matmul.h; limit = sum * (8 / B);
///   kQ8x256Twice: once more with the sum over |x| <= limit, as an outlier far from the others hides lesser ones;
///   values with |x| > limit are outliers: their q is 0, and they are listed as they are;
///   amax = max |x| of the others; scale = amax / 127 (one f32 division); inv = amax > 0 ? 127 / amax : 0;
///   q = x * inv rounded to the nearest integer, ties to even, clamped to [-127, 127].
/// A NaN gives q = 0 for itself and does not enter sum or amax; an infinite amax gives scale = infinity and q = 0: what
/// a broken row yields is the same on every instruction set, and it stays its own.
struct QuantizeArgs {
  const float* x = nullptr;  ///< [rows, k], contiguous
  ActView y;
};
using QuantizeFn = void (*)(const QuantizeArgs&, RowRange) noexcept;
extern const OpTable<QuantizeFn> kQuantizeQ8x32;
extern const OpTable<QuantizeFn> kQuantizeQ8x256;
extern const OpTable<QuantizeFn> kQuantizeQ8x256Twice;
/// The table for a form (kBf16: round_bf16.h); nullptr for kF32.
[[nodiscard]] const OpTable<QuantizeFn>* quantize_table(ActForm form) noexcept;

}  // namespace headrace
