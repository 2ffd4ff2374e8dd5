#pragma once

#include "base/isa.h"
#include "ops/logits.h"

namespace headrace {

/// The kernels of ops/logits.h that run on this machine; all choices give the same bits.
struct LogitKernels {
  ArgMaxFn arg_max = nullptr;
  LogitWeightsFn weights = nullptr;
  NextAboveFn next_above = nullptr;
};

/// The best of class `isa` or below that reproduce a known answer.
[[nodiscard]] LogitKernels choose_logit_kernels(Isa isa);

}  // namespace headrace
