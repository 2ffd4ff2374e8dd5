#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "ops/kv_layout.h"

namespace headrace {

/// The contents of one block in one layer, with all that says what they are. Who loads them under another block id
/// changes `block`.
struct BlockPiece {
  int32_t layer = 0;  ///< number in the model
  int32_t group = 0;
  BlockId block{};
  KvLayout layout;
  std::vector<std::byte> bytes;  ///< kv_block_bytes(layout)
  bool operator==(const BlockPiece&) const = default;
};

/// Version of the encoding, and of what kv_layout.h says of a block; pieces of another version are refused.
inline constexpr uint16_t kBlockPieceVersion = 1;

/// Appends the pieces, little-endian:
///   version u16 | zero u16 | pieces u32, each:
///   layer i32 | group i32 | block i32 | dtype u32 | kv_heads i32 | head_dim i32 | v_head_dim i32 | bytes u32: the
///   bytes
/// dtype: place in kKvDTypes.
void encode_pieces(std::span<const BlockPiece> pieces, std::vector<std::byte>& out);

/// The pieces that `bytes` hold, all of them. Nothing is allocated before it is known that the bytes are there, and a
/// piece has as many of them as its layout needs. Says nothing of whether a cache has such a layer and block: BlockIo
/// checks that.
[[nodiscard]] Result<std::vector<BlockPiece>> decode_pieces(std::span<const std::byte> bytes);

}  // namespace headrace
