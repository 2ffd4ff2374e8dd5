#pragma once

#include "ops/matmul.h"

/// The candidates of the product tables. T is a type with an interleaved layout in matmul_interleaved, F32, F16 or BF16
/// in matmul_plain; matmul_decoded takes any format by decoding rows to f32, a slice at a time; matmul_bf16 takes
/// kBf16Pairs16.
namespace headrace {
namespace ref {
void matmul_interleaved(const MatmulArgs& args, RowRange groups) noexcept;
void matmul_decoded(const MatmulArgs& args, RowRange groups) noexcept;
void matmul_bf16(const MatmulArgs& args, RowRange groups) noexcept;
}  // namespace ref
namespace avx2 {
template <DType T>
void matmul_interleaved(const MatmulArgs& args, RowRange groups) noexcept;
template <DType T>
void matmul_plain(const MatmulArgs& args, RowRange groups) noexcept;
void matmul_decoded(const MatmulArgs& args, RowRange groups) noexcept;
void matmul_bf16(const MatmulArgs& args, RowRange groups) noexcept;
}  // namespace avx2
namespace avx512 {
template <DType T>
void matmul_interleaved(const MatmulArgs& args, RowRange groups) noexcept;
template <DType T>
void matmul_plain(const MatmulArgs& args, RowRange groups) noexcept;
void matmul_decoded(const MatmulArgs& args, RowRange groups) noexcept;
void matmul_bf16(const MatmulArgs& args, RowRange groups) noexcept;
}  // namespace avx512
namespace amx {
/// Few rows go to avx512.
template <DType T>
void matmul_interleaved(const MatmulArgs& args, RowRange groups) noexcept;
void matmul_bf16(const MatmulArgs& args, RowRange groups) noexcept;
}  // namespace amx
}  // namespace headrace
