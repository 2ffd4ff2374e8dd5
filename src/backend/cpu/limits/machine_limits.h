#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/compute_pool.h"
#include "base/isa.h"

namespace headrace {

/// One limit of this machine, as measured.
struct MachineLimit {
  std::string name;
  std::string unit;  ///< "GB/s" (10^9), "Top/s" (10^12; a multiplication or an addition is one), "us"
  int threads = 1;
  double value = 0;   ///< median of several runs
  double spread = 0;  ///< (max - min) / median of these
};

/// Measures what bounds kernels on this machine, with the pool's threads: reading memory (8 streams, fetched ahead,
/// huge pages and small ones), the last-level and second-level cache; arithmetic in registers for every instruction set
/// up to `isa`; the meeting of all threads. Takes a few seconds and `memory_bytes` of memory. `on_limit` sees each one
/// as it comes. Throws Error(kOutOfMemory).
[[nodiscard]] std::vector<MachineLimit> measure_machine(ComputePool& pool, Isa isa, int64_t memory_bytes,
                                                        const std::function<void(const MachineLimit&)>& on_limit = {});

}  // namespace headrace
