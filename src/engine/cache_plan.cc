#include "engine/cache_plan.h"

#include <algorithm>
#include <limits>

#include "base/cat.h"
#include "base/error.h"
#include "kv/cache_size.h"
#include "ops/attention.h"

namespace headrace {
namespace {

/// Where nothing is known of the requests: most are shorter, and then window groups need as many blocks as full ones.
constexpr int32_t kTypicalTokens = 2048;

/// Bytes of the blocks that one sequence of `tokens` tokens needs while it is computed.
int64_t sequence_bytes(const std::vector<CacheGroupCost>& groups, int32_t tokens, int32_t chunk_tokens) {
  int64_t bytes = 0;
  for (const CacheGroupCost& group : groups) {
    bytes += most_blocks_held(group.window, kBlockTokens, tokens, chunk_tokens) * group.block_bytes;
  }
  return bytes;
}

/// The longest sequence, at most `limit` tokens, of which `count` fit.
int32_t longest_that_fits(const std::vector<CacheGroupCost>& groups, int32_t limit, int32_t chunk_tokens, int64_t count,
                          int64_t bytes) {
  int32_t low = 0, high = limit;
  while (low < high) {
    const int32_t middle = low + (high - low + 1) / 2;
    if (sequence_bytes(groups, middle, chunk_tokens) * count <= bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

bool holds_one(const std::vector<CacheGroupCost>& groups, const std::vector<int32_t>& blocks, int32_t tokens,
               int32_t chunk_tokens) {
  for (size_t i = 0; i < groups.size(); ++i) {
    if (blocks[i] < most_blocks_held(groups[i].window, kBlockTokens, tokens, chunk_tokens)) return false;
  }
  return true;
}

}  // namespace

CachePlan plan_cache(const ArchSpec& spec, DType kv_dtype, const CacheWish& wish, int64_t bytes) {
  if (wish.max_model_len > spec.max_positions) {
    throw Error(ErrorCode::kInvalidArgument,
                cat("--max-model-len ", wish.max_model_len, ": the model has ", spec.max_positions, " positions"));
  }
  std::vector<CacheGroupCost> groups;
  for (const CacheGroupSpec& group : spec.cache_groups) {
    groups.push_back({group.window, kv_bytes_per_token(spec, group, kv_dtype) * kBlockTokens});
  }
  const int64_t count = std::max(wish.num_seqs, 1);
  const int32_t limit = wish.max_model_len > 0 ? wish.max_model_len : spec.max_positions;
  CachePlan plan{.group_blocks = {},
                 .max_model_len = longest_that_fits(groups, limit, wish.chunk_tokens, count, bytes)};
  if (plan.max_model_len < std::max(wish.max_model_len, kBlockTokens)) {
    throw Error(ErrorCode::kOutOfMemory,
                cat("the KV cache has room for ", plan.max_model_len, " tokens of ", count,
                    count == 1 ? " sequence" : " sequences", ", ", std::max(wish.max_model_len, kBlockTokens),
                    " are asked for: lower --max-model-len, or give it more memory with "
                    "--kv-cache-memory-bytes"));
  }
  if (wish.num_seqs > 0) {
    for (const CacheGroupCost& group : groups) {
      const int32_t one = most_blocks_held(group.window, kBlockTokens, plan.max_model_len, wish.chunk_tokens);
      plan.group_blocks.push_back(static_cast<int32_t>(one * count));
    }
  } else {
    plan.group_blocks =
        blocks_for_memory(bytes, groups, kBlockTokens, std::min(plan.max_model_len, kTypicalTokens), wish.chunk_tokens);
    if (!holds_one(groups, plan.group_blocks, plan.max_model_len, wish.chunk_tokens)) {
      plan.group_blocks = blocks_for_memory(bytes, groups, kBlockTokens, plan.max_model_len, wish.chunk_tokens);
    }
  }
  plan.tokens = std::numeric_limits<int64_t>::max();
  const bool any_full = std::ranges::any_of(groups, [](const CacheGroupCost& group) { return group.window == 0; });
  for (size_t i = 0; i < groups.size(); ++i) {
    if (any_full && groups[i].window != 0) continue;
    plan.tokens = std::min(plan.tokens, int64_t{plan.group_blocks[i]} * kBlockTokens);
  }
  return plan;
}

}  // namespace headrace
