#pragma once

#include <cstdint>
#include <vector>

#include "arch/arch_spec.h"

namespace headrace {

/// What a KV cache is to hold.
struct CacheWish {
  int32_t max_model_len = 0;   ///< tokens of the longest sequence; 0: as many as the model and the memory allow
  int32_t chunk_tokens = 512;  ///< of a prompt, computed in one step
  /// Sequences of that length at once; 0: as many as the memory holds.
  int32_t num_seqs = 0;
};

/// How large a KV cache is.
struct CachePlan {
  std::vector<int32_t> group_blocks;  ///< of each cache group
  int32_t max_model_len = 0;
  int64_t tokens = 0;  ///< that it has room for, all sequences together
};

/// Fits a cache into `bytes`. Throws Error: kInvalidArgument where the model has fewer positions than the wish,
/// kOutOfMemory where the memory is too small for it.
[[nodiscard]] CachePlan plan_cache(const ArchSpec& spec, DType kv_dtype, const CacheWish& wish, int64_t bytes);

}  // namespace headrace
