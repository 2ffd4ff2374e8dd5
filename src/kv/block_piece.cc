#include "kv/block_piece.h"

#include <algorithm>
#include <optional>

#include "base/byte_reader.h"

namespace headrace {
namespace {

constexpr size_t kHeadBytes = 8 * 4;  // of a piece
constexpr int32_t kMostHeads = 1 << 16;

/// nullopt where no cache has such a layout; its bytes then need not be computable.
std::optional<KvLayout> take_layout(ByteReader& in) {
  const uint32_t dtype = in.take<uint32_t>();
  KvLayout layout;
  layout.kv_heads = in.take<int32_t>();
  layout.head_dim = in.take<int32_t>();
  layout.v_head_dim = in.take<int32_t>();
  const auto in_range = [](int32_t value, int32_t most) { return value > 0 && value <= most; };
  if (dtype >= kKvDTypes.size() || !in_range(layout.kv_heads, kMostHeads) || !in_range(layout.head_dim, kMaxHeadDim) ||
      !in_range(layout.v_head_dim, kMaxHeadDim)) {
    return std::nullopt;
  }
  layout.dtype = kKvDTypes[dtype];
  return layout;
}

}  // namespace

void encode_pieces(std::span<const BlockPiece> pieces, std::vector<std::byte>& out) {
  append_le(out, kBlockPieceVersion);
  append_le(out, uint16_t{0});
  append_count(out, pieces.size());
  for (const BlockPiece& piece : pieces) {
    append_le(out, piece.layer);
    append_le(out, piece.group);
    append_le(out, raw(piece.block));
    append_le(out, static_cast<uint32_t>(std::ranges::find(kKvDTypes, piece.layout.dtype) - kKvDTypes.begin()));
    append_le(out, piece.layout.kv_heads);
    append_le(out, piece.layout.head_dim);
    append_le(out, piece.layout.v_head_dim);
    append_count(out, piece.bytes.size());
    out.insert(out.end(), piece.bytes.begin(), piece.bytes.end());
  }
}

Result<std::vector<BlockPiece>> decode_pieces(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const uint16_t version = in.take<uint16_t>();
  if (in.ok() && version != kBlockPieceVersion) {
    return Error(ErrorCode::kUnsupported, cat("cache blocks of version ", version, ", expected ", kBlockPieceVersion));
  }
  if (const uint16_t zero = in.take<uint16_t>(); zero != 0) {
    return Error(ErrorCode::kCorrupt, cat("cache blocks: padding is ", zero, ", expected 0"));
  }
  const size_t count = in.take_count(kHeadBytes);
  std::vector<BlockPiece> pieces;
  for (size_t i = 0; i < count && in.ok(); ++i) {
    BlockPiece& piece = pieces.emplace_back();
    piece.layer = in.take<int32_t>();
    piece.group = in.take<int32_t>();
    piece.block = BlockId{in.take<int32_t>()};
    const std::optional<KvLayout> layout = take_layout(in);
    const size_t size = in.take_count(1);
    if (!in.ok()) break;
    if (!layout || static_cast<int64_t>(size) != kv_block_bytes(*layout)) {
      return Error(ErrorCode::kCorrupt,
                   cat("cache block ", i, " of layer ", piece.layer, ": ", size, " bytes, ",
                       layout ? cat("its layout has ", kv_block_bytes(*layout)) : "no such layout"));
    }
    piece.layout = *layout;
    const std::span<const std::byte> contents = in.take_bytes(size);
    piece.bytes.assign(contents.begin(), contents.end());
  }
  if (!in.ok()) {
    return Error(ErrorCode::kCorrupt, cat("cache blocks: cut short or a count too large, ", bytes.size(), " bytes"));
  }
  if (in.left() != 0) return Error(ErrorCode::kCorrupt, cat("cache blocks: ", in.left(), " bytes too many"));
  return pieces;
}

}  // namespace headrace
