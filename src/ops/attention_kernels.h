#pragma once

#include "ops/attention.h"

/// The kernels of attention by instruction set, for the tables.
namespace headrace {

namespace ref {
void attention_f32(const AttentionArgs& a, RowRange items) noexcept;
void attention_f16(const AttentionArgs& a, RowRange items) noexcept;
void attention_bf16(const AttentionArgs& a, RowRange items) noexcept;
void attention_i8(const AttentionArgs& a, RowRange items) noexcept;
}  // namespace ref
namespace avx2 {
void attention_f32(const AttentionArgs& a, RowRange items) noexcept;
void attention_f16(const AttentionArgs& a, RowRange items) noexcept;
void attention_bf16(const AttentionArgs& a, RowRange items) noexcept;
void attention_i8(const AttentionArgs& a, RowRange items) noexcept;
}  // namespace avx2
namespace avx512 {
void attention_f32(const AttentionArgs& a, RowRange items) noexcept;
void attention_f16(const AttentionArgs& a, RowRange items) noexcept;
void attention_bf16(const AttentionArgs& a, RowRange items) noexcept;
void attention_i8(const AttentionArgs& a, RowRange items) noexcept;
}  // namespace avx512
namespace amx {
void attention_bf16(const AttentionArgs& a, RowRange items) noexcept;
}  // namespace amx

}  // namespace headrace
