#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "kv/block_piece.h"

using namespace headrace;

/// Pieces that decode must encode to the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const Result<std::vector<BlockPiece>> pieces = decode_pieces(bytes);
  if (!pieces) return 0;
  std::vector<std::byte> again;
  encode_pieces(pieces.value(), again);
  if (!std::ranges::equal(again, bytes)) std::abort();
  return 0;
}
