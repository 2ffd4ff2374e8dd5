#include "backend/fakedev/device_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

namespace headrace {
namespace {

constexpr int64_t kAlignment = 64;

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

DeviceMemory::DeviceMemory(int64_t capacity_bytes)
    : page_bytes_(sysconf(_SC_PAGESIZE)), capacity_bytes_(round_up(capacity_bytes, page_bytes_)) {
  HR_CHECK(capacity_bytes > 0, "capacity ", capacity_bytes);
  const auto size = static_cast<size_t>(capacity_bytes_);
  memfd_ = memfd_create("headrace-fakedev", MFD_CLOEXEC);
  if (memfd_ >= 0 && ftruncate(memfd_, capacity_bytes_) == 0) {
    const auto map = [&] {
      void* const base = mmap(nullptr, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, memfd_, 0);
      return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
    };
    device_base_ = map();
    local_base_ = map();
  }
  if (device_base_ == nullptr || local_base_ == nullptr) {
    if (device_base_ != nullptr) munmap(device_base_, size);
    if (memfd_ >= 0) close(memfd_);
    throw Error(ErrorCode::kOutOfMemory, cat("fakedev: the system has no address space for 2 x ", capacity_bytes_,
                                             " bytes; ask for a smaller device"));
  }
  free_.emplace(0, capacity_bytes_);
}

DeviceMemory::~DeviceMemory() {
  munmap(device_base_, static_cast<size_t>(capacity_bytes_));
  munmap(local_base_, static_cast<size_t>(capacity_bytes_));
  close(memfd_);
}

// A piece: | pages, its bytes at their end | page that stays inaccessible |
void* DeviceMemory::allocate(int64_t bytes) {
  HR_CHECK(bytes >= 0, "bytes ", bytes);
  const std::lock_guard lock(mutex_);
  int64_t largest = 0;
  if (bytes <= capacity_bytes_) {
    const int64_t pages = round_up(std::max<int64_t>(bytes, 1), page_bytes_);
    const int64_t piece = pages + page_bytes_;
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const auto [offset, size] = *it;
      largest = std::max(largest, size);
      if (size < piece || !protect(offset, pages, true)) continue;
      free_.erase(it);
      if (size > piece) free_.emplace(offset + piece, size - piece);
      return device_base_ + offset + pages - round_up(bytes, kAlignment);
    }
  }
  throw Error(ErrorCode::kOutOfMemory, cat("fakedev: no room for ", bytes, " bytes in a device of ", capacity_bytes_,
                                           ", largest free range ", largest, "; ask for a larger device"));
}

void DeviceMemory::release(void* device, int64_t bytes) noexcept {
  if (device == nullptr) return;
  const int64_t pages = round_up(std::max<int64_t>(bytes, 1), page_bytes_);
  int64_t offset = static_cast<std::byte*>(device) - device_base_ + round_up(bytes, kAlignment) - pages;
  int64_t size = pages + page_bytes_;
  HR_CHECK(offset >= 0 && offset + size <= capacity_bytes_ && offset % page_bytes_ == 0, "not a piece of ", bytes);
  const std::lock_guard lock(mutex_);
  // The hole gives the memory back and reads as zeros when it is allocated again.
  HR_CHECK(protect(offset, pages, false), "mprotect failed");
  HR_CHECK(fallocate(memfd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, pages) == 0, "fallocate failed");
  const auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    HR_CHECK(before->first + before->second <= offset, "released twice");
    if (before->first + before->second == offset) {
      offset = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end()) {
    HR_CHECK(offset + size <= after->first, "released twice");
    if (offset + size == after->first) {
      size += after->second;
      free_.erase(after);
    }
  }
  free_.emplace(offset, size);
}

void DeviceMemory::discard(void* device, int64_t bytes) noexcept {
  // All ones are a NaN in every float type, so that who reads this anyway shows it.
  std::memset(local(device), 0xff, static_cast<size_t>(bytes));
}

const void* DeviceMemory::local_address(const void* device) const noexcept {
  if (device == nullptr) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(device);
  const auto base = reinterpret_cast<uintptr_t>(device_base_);
  HR_CHECK(address >= base && address - base < static_cast<uintptr_t>(capacity_bytes_),
           "fakedev: a host address was given where a device address belongs");
  return local_base_ + (address - base);
}

bool DeviceMemory::protect(int64_t offset, int64_t bytes, bool accessible) const noexcept {
  return mprotect(local_base_ + offset, static_cast<size_t>(bytes), accessible ? PROT_READ | PROT_WRITE : PROT_NONE) ==
         0;
}

}  // namespace headrace
