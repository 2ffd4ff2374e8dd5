#pragma once

#include "base/system_memory.h"

namespace headrace::cluster {

/// Bytes that weights, workspace and KV cache of this machine may take together: what is asked for, or (0) most of what
/// is free now.
[[nodiscard]] inline int64_t memory_budget(int64_t asked) {
  constexpr double kFreeShare = 0.8;
  return asked > 0 ? asked : static_cast<int64_t>(kFreeShare * static_cast<double>(available_memory_bytes()));
}

}  // namespace headrace::cluster
