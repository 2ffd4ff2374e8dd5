#include "backend/cpu/host_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace headrace {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

}  // namespace

void* map_huge_pages(int64_t bytes) noexcept {
  if (bytes > std::numeric_limits<int64_t>::max() - 2 * static_cast<int64_t>(kHugePageBytes)) return nullptr;
  const auto wanted = static_cast<size_t>((bytes + kHostPageBytes - 1) / kHostPageBytes * kHostPageBytes);
  const size_t mapped = wanted + kHugePageBytes;
  void* const memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const size_t before = -reinterpret_cast<uintptr_t>(memory) % kHugePageBytes;
  std::byte* const aligned = static_cast<std::byte*>(memory) + before;
  if (before > 0) munmap(memory, before);
  if (before < kHugePageBytes) munmap(aligned + wanted, kHugePageBytes - before);
  // Advice only: a weight matrix touches each page once a step, and page walks cost a good part of that.
  (void)madvise(aligned, wanted, MADV_HUGEPAGE);
  return aligned;
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
  const int64_t pages = (bytes + kHostPageBytes - 1) / kHostPageBytes;
  const std::lock_guard lock(mutex_);
  for (const auto& chunk : chunks_) {
    const int64_t first = find_free(*chunk, pages);
    if (first == kChunkPages) continue;
    mark(*chunk, first, pages, true);
    return chunk->memory + first * kHostPageBytes;
  }
  auto chunk = std::make_unique<Chunk>();
  chunks_.reserve(chunks_.size() + 1);
  chunk->memory = static_cast<std::byte*>(map_huge_pages(kChunkBytes));
  if (chunk->memory == nullptr) return nullptr;
  mark(*chunk, 0, pages, true);
  return chunks_.emplace_back(std::move(chunk))->memory;
}

void HostArena::release(void* piece, int64_t bytes) noexcept {
  auto* const memory = static_cast<std::byte*>(piece);
  const int64_t pages = (bytes + kHostPageBytes - 1) / kHostPageBytes;
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
