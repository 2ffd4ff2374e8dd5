#pragma once

#include "ops/activation.h"

/// The vector candidates of kQuantizeQ8x32, kQuantizeQ8x256 and kQuantizeQ8x256Twice.
namespace headrace {
namespace avx2 {
void quantize_q8x32(const QuantizeArgs& args, RowRange rows) noexcept;
void quantize_q8x256(const QuantizeArgs& args, RowRange rows) noexcept;
void quantize_q8x256_twice(const QuantizeArgs& args, RowRange rows) noexcept;
}  // namespace avx2
namespace avx512 {
void quantize_q8x32(const QuantizeArgs& args, RowRange rows) noexcept;
void quantize_q8x256(const QuantizeArgs& args, RowRange rows) noexcept;
void quantize_q8x256_twice(const QuantizeArgs& args, RowRange rows) noexcept;
}  // namespace avx512
}  // namespace headrace
