#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/tuning.h"
#include "base/compute_pool.h"

namespace headrace {

/// The processor as a device: for each operator the best candidate of class `isa` or below that reproduces its known
/// answer (one that does not is logged and the next is taken). Work is split over the threads of `pool`, which must
/// outlive the backend; `tuning` changes which candidates and splits, never results. Queues run what they are given at
/// once: synchronize() has nothing to wait for.
[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend(ComputePool& pool, Isa isa, const CpuTuning& tuning = {});

}  // namespace headrace
