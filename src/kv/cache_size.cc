#include "kv/cache_size.h"

#include <algorithm>
#include <limits>

namespace headrace {

int32_t most_blocks_held(int32_t window, int32_t block_tokens, int32_t tokens, int32_t chunk_tokens) noexcept {
  const int64_t all = (int64_t{tokens} + block_tokens - 1) / block_tokens;
  if (window == 0) return static_cast<int32_t>(all);
  // A chunk's positions and the window - 1 before them, which touch most blocks when they begin at a block's end.
  const int64_t span = int64_t{window} - 1 + std::min(tokens, chunk_tokens);
  return static_cast<int32_t>(std::min(all, (span + block_tokens - 2) / block_tokens + 1));
}

std::vector<int32_t> blocks_for_memory(int64_t bytes, std::span<const CacheGroupCost> groups, int32_t block_tokens,
                                       int32_t tokens, int32_t chunk_tokens) {
  double sequence_bytes = 0, chunk_bytes = 0;
  const auto held = [&](const CacheGroupCost& group, int32_t chunk) {
    return static_cast<double>(most_blocks_held(group.window, block_tokens, tokens, chunk));
  };
  for (const CacheGroupCost& group : groups) {
    sequence_bytes += held(group, 1) * static_cast<double>(group.block_bytes);
    chunk_bytes += (held(group, chunk_tokens) - held(group, 1)) * static_cast<double>(group.block_bytes);
  }
  // With no room for a chunk too, all of it goes to sequences; none fits then, which the caller finds out.
  const bool room = static_cast<double>(bytes) > chunk_bytes;
  const double sequences = (static_cast<double>(bytes) - (room ? chunk_bytes : 0)) / sequence_bytes;
  std::vector<int32_t> blocks;
  for (const CacheGroupCost& group : groups) {
    const double once = room ? held(group, chunk_tokens) - held(group, 1) : 0;
    const double count = once + sequences * held(group, 1);
    blocks.push_back(static_cast<int32_t>(std::min<double>(count, std::numeric_limits<int32_t>::max())));
  }
  return blocks;
}

}  // namespace headrace
