#pragma once

#include <array>
#include <cstdint>

#include "tensor/dtype.h"

namespace headrace {

/// Tokens in a block of the KV cache.
inline constexpr int32_t kBlockTokens = 16;
/// Largest head_dim and v_head_dim that attention takes.
inline constexpr int32_t kMaxHeadDim = 1024;

/// One layer's slab of the KV cache: blocks one after the other, indexed by block id. A block, for each KV head in
/// turn:
///
///   kF32, kF16  K  [head_dim][16 tokens]         transposed, so that a vector holds one component of 16 tokens
///               V  [16 tokens][v_head_dim]
///   kBF16       K  [head_dim / 2][16 tokens][2]  pairs of components: a row of an AMX tile. An odd head_dim is
///                                                rounded up, and the component that is not there is 0.
///               V  [8][v_head_dim][2 tokens]     pairs of tokens, v_head_dim rounded up to a multiple of 16
///   kI8         K  [head_dim][16 tokens], then f32 scales[16]: a component is code * scale of its token
///               V  [16 tokens][v_head_dim], then f32 scales[16]
///
/// Each part is a multiple of 16 elements long.
struct KvLayout {
  DType dtype = DType::kF16;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t v_head_dim = 0;
  bool operator==(const KvLayout&) const = default;
};

/// The types that a KV cache may have.
inline constexpr std::array kKvDTypes{DType::kF32, DType::kF16, DType::kBF16, DType::kI8};

[[nodiscard]] inline int64_t kv_element_bytes(DType dtype) noexcept {
  return dtype == DType::kF32 ? 4 : dtype == DType::kI8 ? 1 : 2;
}
/// Components of a value as the layout has room for.
[[nodiscard]] inline int64_t kv_value_room(const KvLayout& layout) noexcept {
  return layout.dtype == DType::kBF16 ? (int64_t{layout.v_head_dim} + 15) / 16 * 16 : layout.v_head_dim;
}
/// Bytes of one head's keys in a block without their scales, which follow.
[[nodiscard]] inline int64_t kv_key_bytes(const KvLayout& layout) noexcept {
  const int64_t room = layout.dtype == DType::kBF16 ? (int64_t{layout.head_dim} + 1) / 2 * 2 : layout.head_dim;
  return room * kBlockTokens * kv_element_bytes(layout.dtype);
}
/// The same of its values.
[[nodiscard]] inline int64_t kv_value_bytes(const KvLayout& layout) noexcept {
  return kv_value_room(layout) * kBlockTokens * kv_element_bytes(layout.dtype);
}
[[nodiscard]] inline int64_t kv_scale_bytes(const KvLayout& layout) noexcept {
  return layout.dtype == DType::kI8 ? int64_t{kBlockTokens} * 4 : 0;
}
/// Where a head's values begin, from its keys.
[[nodiscard]] inline int64_t kv_value_offset(const KvLayout& layout) noexcept {
  return kv_key_bytes(layout) + kv_scale_bytes(layout);
}
/// One KV head's part of a block.
[[nodiscard]] inline int64_t kv_head_bytes(const KvLayout& layout) noexcept {
  return kv_value_offset(layout) + kv_value_bytes(layout) + kv_scale_bytes(layout);
}
[[nodiscard]] inline int64_t kv_block_bytes(const KvLayout& layout) noexcept {
  return layout.kv_heads * kv_head_bytes(layout);
}

/// Element of component i of the key (value) of token `place`, counted from where the head's keys (values) begin.
[[nodiscard]] inline int64_t kv_key_index(const KvLayout& layout, int64_t place, int64_t i) noexcept {
  return layout.dtype == DType::kBF16 ? (i / 2 * kBlockTokens + place) * 2 + i % 2 : i * kBlockTokens + place;
}
[[nodiscard]] inline int64_t kv_value_index(const KvLayout& layout, int64_t place, int64_t i) noexcept {
  return layout.dtype == DType::kBF16 ? (place / 2 * kv_value_room(layout) + i) * 2 + place % 2
                                      : place * layout.v_head_dim + i;
}

}  // namespace headrace
