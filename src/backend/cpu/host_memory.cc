#include "backend/cpu/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backend/cpu/host_arena.h"
#include "base/check.h"
#include "base/error.h"

namespace headrace {
namespace {

constexpr int64_t kArenaFrom = int64_t{64} << 10;
constexpr size_t kAlignment = 64;

/// Lives as long as the process: what is in it may be given back at its end.
HostArena& arena() {
  static HostArena& instance = *new HostArena;
  return instance;
}

[[noreturn]] void throw_out_of_memory(int64_t bytes) {
  throw Error(ErrorCode::kOutOfMemory,
              cat("memory: the system has no ", bytes, " bytes (", bytes >> 20,
                  " MiB) to give; use a smaller model or context, or free memory on this machine"));
}

}  // namespace

void* allocate_host_memory(int64_t bytes) {
  HR_CHECK(bytes >= 0, "bytes ", bytes);
  if (bytes >= kArenaFrom) {
    void* const memory = bytes <= HostArena::kMostBytes ? arena().allocate(bytes) : map_huge_pages(bytes);
    if (memory == nullptr) throw_out_of_memory(bytes);
    return memory;
  }
  const size_t rounded = (std::max<size_t>(static_cast<size_t>(bytes), 1) + kAlignment - 1) / kAlignment * kAlignment;
  void* const memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) throw_out_of_memory(bytes);
  std::memset(memory, 0, rounded);
  return memory;
}

void release_host_memory(void* memory, int64_t bytes) noexcept {
  if (memory == nullptr) return;
  if (bytes > HostArena::kMostBytes) {
    munmap(memory, static_cast<size_t>(bytes));
  } else if (bytes >= kArenaFrom) {
    arena().release(memory, bytes);
  } else {
    std::free(memory);
  }
}

void discard_host_memory(void* part, int64_t bytes) noexcept {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(part) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(part) + static_cast<uintptr_t>(bytes)) / page * page;
  // Advice only: where it fails, the memory stays as it is.
  if (first < end) (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace headrace
