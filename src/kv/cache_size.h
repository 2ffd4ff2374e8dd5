#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

/// The most blocks of a group with that window (0: full) that one sequence of `tokens` tokens holds at once, computed
/// in chunks of at most `chunk_tokens`.
[[nodiscard]] int32_t most_blocks_held(int32_t window, int32_t block_tokens, int32_t tokens,
                                       int32_t chunk_tokens) noexcept;

/// What a block of a cache group costs.
struct CacheGroupCost {
  int32_t window = 0;       ///< 0: full
  int64_t block_bytes = 0;  ///< in all layers of the group together
};

/// The numbers of blocks that fit in `bytes` and hold as many sequences of `tokens` tokens as possible, of which one is
/// computed in chunks of `chunk_tokens` and the others token by token. Shorter sequences use window groups more than
/// full ones, so `tokens` should not be larger than they are.
[[nodiscard]] std::vector<int32_t> blocks_for_memory(int64_t bytes, std::span<const CacheGroupCost> groups,
                                                     int32_t block_tokens, int32_t tokens, int32_t chunk_tokens);

}  // namespace headrace
