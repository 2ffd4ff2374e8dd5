#pragma once

#include "ops/matmul.h"

/// The candidates of recipe r8x256. T is a type with an interleaved layout.
namespace headrace {
namespace ref {
void matmul_r8x256(const MatmulArgs& args, RowRange groups) noexcept;
}  // namespace ref
namespace avx2 {
template <DType T>
void matmul_r8x256(const MatmulArgs& args, RowRange groups) noexcept;
}  // namespace avx2
namespace avx512 {
template <DType T>
void matmul_r8x256(const MatmulArgs& args, RowRange groups) noexcept;
}  // namespace avx512
namespace amx {
/// Few rows go to avx512.
template <DType T>
void matmul_r8x256(const MatmulArgs& args, RowRange groups) noexcept;
}  // namespace amx
}  // namespace headrace
