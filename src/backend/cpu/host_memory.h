#pragma once

#include <cstdint>

namespace headrace {

/// Zeroed host memory, 64-byte aligned or better; 0 bytes give a valid address too. From 64 KiB on: whole pages,
/// huge ones where the system has them, which cost physical memory once they are written.
/// Throws Error(kOutOfMemory) that names the size.
[[nodiscard]] void* allocate_host_memory(int64_t bytes);
/// Gives back what allocate_host_memory(bytes) returned.
void release_host_memory(void* memory, int64_t bytes) noexcept;
/// Gives the physical memory of the whole pages within a part of such an allocation back to the system; the part's
/// contents are undefined afterwards.
void discard_host_memory(void* part, int64_t bytes) noexcept;

}  // namespace headrace
