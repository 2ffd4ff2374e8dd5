#pragma once

#include <cstdint>

namespace headrace {

/// Memory that this process can still get without swapping: what the kernel calls available, bounded by what is left of
/// the cgroup's limit (v1 and v2).
[[nodiscard]] int64_t available_memory_bytes();
/// Resident memory of this process.
[[nodiscard]] int64_t resident_memory_bytes();

}  // namespace headrace
