#pragma once

#include "ops/activation.h"

namespace headrace {

/// Rounds f32 rows to bf16 (ActForm::kBf16), padded with zeros. Items: rows.
/// Recipe "bf16 v1": subnormals become zero of their sign; else the nearest bf16, ties to even, infinity beyond the
/// largest; a NaN keeps its sign and its upper payload bits and becomes quiet. It is what VCVTNEPS2BF16 does.
extern const OpTable<QuantizeFn> kRoundBf16;

namespace ref {
void round_bf16(const QuantizeArgs& args, RowRange rows) noexcept;
}  // namespace ref
namespace avx2 {
void round_bf16(const QuantizeArgs& args, RowRange rows) noexcept;
}  // namespace avx2
namespace avx512 {
void round_bf16(const QuantizeArgs& args, RowRange rows) noexcept;
}  // namespace avx512
}  // namespace headrace
