#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace headrace {

constexpr int64_t kHostPageBytes = 4096;

/// Pieces of host memory side by side in chunks that begin at huge pages: a model's matrices, of 100 KiB to some MiB,
/// would otherwise lie in small pages with their edges or as a whole, which read a third slower and make each first
/// touch of a page wait for a walk. A chunk costs physical memory only where it is written, and goes back to the system
/// with its last piece. Any thread may call.
class HostArena {
 public:
  static constexpr int64_t kMostBytes = int64_t{32} << 20;  ///< of a piece; larger ones lose little at their edges

  /// Zeroed whole pages; 1 to kMostBytes. nullptr where the system has no memory.
  [[nodiscard]] void* allocate(int64_t bytes);
  /// Gives back what allocate(bytes) returned.
  void release(void* piece, int64_t bytes) noexcept;

 private:
  static constexpr int64_t kChunkBytes = int64_t{64} << 20;
  static constexpr int64_t kChunkPages = kChunkBytes / kHostPageBytes;

  struct Chunk {
    std::byte* memory = nullptr;
    std::bitset<kChunkPages> used;
  };
  /// The first of `pages` free pages in a row; kChunkPages if there are none.
  [[nodiscard]] static int64_t find_free(const Chunk& chunk, int64_t pages) noexcept;
  static void mark(Chunk& chunk, int64_t first, int64_t pages, bool used) noexcept;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

/// Maps zeroed whole pages and advises the system to use huge ones; nullptr where it has no memory. Each mapping begins
/// at another place of a huge page, so do the first pieces of the arena's chunks: the caches of all layers are written
/// for the first time side by side, and would else wait for a fresh huge page each, all in one step.
[[nodiscard]] void* map_huge_pages(int64_t bytes) noexcept;

}  // namespace headrace
