#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace headrace {

/// One memory file, mapped twice. Device addresses belong to the first mapping, which nobody may touch; the queue's
/// thread reaches the same bytes at a constant distance, in the second. Of that one only allocated pieces are
/// accessible, each with its end at an inaccessible page: a kernel that runs past a piece, or uses one that was
/// released, crashes. Threading: any thread.
class DeviceMemory {
 public:
  /// Reserves address space for `capacity_bytes` (rounded up to pages). Throws Error(kOutOfMemory).
  explicit DeviceMemory(int64_t capacity_bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Zeroed, 64-byte aligned. Throws Error(kOutOfMemory) that names the size and what is left.
  [[nodiscard]] void* allocate(int64_t bytes);
  void release(void* device, int64_t bytes) noexcept;
  /// Overwrites a part of a piece: what was discarded must not be read before it is written again.
  void discard(void* device, int64_t bytes) noexcept;

  /// Where the queue's thread finds what lies at a device address; null stays null. An address of the host ends the
  /// program: it is the very bug that this device is there to find.
  template <class T>
  [[nodiscard]] T* local(T* device) const noexcept {
    return const_cast<T*>(static_cast<const T*>(local_address(device)));
  }

 private:
  [[nodiscard]] const void* local_address(const void* device) const noexcept;
  /// Makes [offset, offset + bytes) of the second mapping accessible or not.
  [[nodiscard]] bool protect(int64_t offset, int64_t bytes, bool accessible) const noexcept;

  const int64_t page_bytes_;
  const int64_t capacity_bytes_;
  int memfd_ = -1;
  std::byte* device_base_ = nullptr;
  std::byte* local_base_ = nullptr;

  std::mutex mutex_;
  std::map<int64_t, int64_t> free_;  // guarded by mutex_: offset to size of the free ranges, neighbours joined
};

}  // namespace headrace
