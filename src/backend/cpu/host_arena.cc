#include "backend/cpu/host_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

namespace headrace {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

constexpr int64_t pages_of(int64_t bytes) noexcept { return (bytes + kHostPageBytes - 1) / kHostPageBytes; }

/// Where in a huge page the next large piece begins, in pages: places far from those of the pieces before it.
int64_t next_place() noexcept {
  static std::atomic<int64_t> pieces{0};
  constexpr int64_t kPages = static_cast<int64_t>(kHugePageBytes) / kHostPageBytes, kStep = 317;  // golden section, odd
  return pieces.fetch_add(1, std::memory_order_relaxed) * kStep % kPages;
}

/// From `place` bytes behind the begin of a huge page on.
void* map_from(size_t place, int64_t bytes) noexcept {
  if (bytes > std::numeric_limits<int64_t>::max() - 2 * static_cast<int64_t>(kHugePageBytes)) return nullptr;
  const auto wanted = static_cast<size_t>(pages_of(bytes) * kHostPageBytes);
  void* const memory =
      mmap(nullptr, wanted + kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const size_t before = (place - reinterpret_cast<uintptr_t>(memory)) % kHugePageBytes;
  std::byte* const begin = static_cast<std::byte*>(memory) + before;
  if (before > 0) munmap(memory, before);
  munmap(begin + wanted, kHugePageBytes - before);
  // Advice only: a weight matrix touches each page once a step, and page walks cost a good part of that.
  (void)madvise(begin, wanted, MADV_HUGEPAGE);
  return begin;
}

}  // namespace

void* map_huge_pages(int64_t bytes) noexcept {
  return map_from(static_cast<size_t>(next_place() * kHostPageBytes), bytes);
}

int64_t HostArena::find_free(const Chunk& chunk, int64_t pages) noexcept {
  int64_t in_row = 0;
  for (int64_t page = 0; page < kChunkPages; ++page) {
    in_row = chunk.used[static_cast<size_t>(page)] ? 0 : in_row + 1;
    if (in_row == pages) return page + 1 - pages;
  }
  return kChunkPages;
}

void HostArena::mark(Chunk& chunk, int64_t first, int64_t pages, bool used) noexcept {
  for (int64_t page = first; page < first + pages; ++page) chunk.used[static_cast<size_t>(page)] = used;
}

void* HostArena::allocate(int64_t bytes) {
  const int64_t pages = pages_of(bytes);
  const std::lock_guard lock(mutex_);
  for (const auto& chunk : chunks_) {
    const int64_t first = find_free(*chunk, pages);
    if (first == kChunkPages) continue;
    mark(*chunk, first, pages, true);
    return chunk->memory + first * kHostPageBytes;
  }
  auto chunk = std::make_unique<Chunk>();
  chunks_.reserve(chunks_.size() + 1);
  chunk->memory = static_cast<std::byte*>(map_from(0, kChunkBytes));
  if (chunk->memory == nullptr) return nullptr;
  const int64_t first = next_place();
  mark(*chunk, first, pages, true);
  return chunks_.emplace_back(std::move(chunk))->memory + first * kHostPageBytes;
}

void HostArena::release(void* piece, int64_t bytes) noexcept {
  auto* const memory = static_cast<std::byte*>(piece);
  const int64_t pages = pages_of(bytes);
  const std::lock_guard lock(mutex_);
  const auto chunk = std::find_if(chunks_.begin(), chunks_.end(), [memory](const auto& one) {
    return memory >= one->memory && memory < one->memory + kChunkBytes;
  });
  mark(**chunk, (memory - (*chunk)->memory) / kHostPageBytes, pages, false);
  if ((*chunk)->used.none()) {
    munmap((*chunk)->memory, kChunkBytes);
    chunks_.erase(chunk);
    return;
  }
  // The next piece here wants zeros, which dropped pages read as; where they are locked, they cannot be dropped.
  const auto size = static_cast<size_t>(pages * kHostPageBytes);
  if (madvise(memory, size, MADV_DONTNEED) != 0) std::memset(memory, 0, size);
}

}  // namespace headrace
