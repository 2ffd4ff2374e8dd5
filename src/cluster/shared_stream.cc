#include "cluster/shared_stream.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace headrace::cluster {
namespace {

/// Many rows of decode steps; a prompt's rows are read while more are written.
constexpr uint64_t kCapacity = uint64_t{1} << 20;

using Counter = std::atomic_ref<uint64_t>;
static_assert(Counter::is_always_lock_free, "a lock would be each process's own");

}  // namespace

struct SharedStream::Memory {
  alignas(64) uint64_t written;  // modulo 2^64, both
  alignas(64) uint64_t read;
  alignas(64) std::array<std::byte, kCapacity> bytes;
};

Descriptor SharedStream::make_memory() {
  Descriptor file(::memfd_create("headrace-ranks", MFD_CLOEXEC));
  if (file.get() < 0 || ::ftruncate(file.get(), sizeof(Memory)) != 0) {
    throw Error(ErrorCode::kOutOfMemory, cat("no memory for ranks to share: ", system_error_text(errno)));
  }
  return file;
}

SharedStream::SharedStream(int memory, int bell) : bell_(bell) {
  void* const at = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (at == MAP_FAILED) {
    throw Error(ErrorCode::kOutOfMemory, cat("memory that ranks share cannot be mapped: ", system_error_text(errno)));
  }
  memory_ = static_cast<Memory*>(at);
}

SharedStream::~SharedStream() { ::munmap(memory_, sizeof(Memory)); }

void SharedStream::answer_bell() noexcept {
  std::array<std::byte, 256> rings;
  while (!other_gone_) {
    const ssize_t n = ::recv(bell_, rings.data(), rings.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    other_gone_ = n <= 0;
  }
}

void SharedStream::ring_bell() const noexcept {
  // Where there is no room for another ring, the other process has enough of them to wake it.
  const std::byte ring{1};
  (void)::send(bell_, &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void SharedStream::copy_in(uint64_t at, std::span<const std::byte> bytes) noexcept {
  const uint64_t place = at % kCapacity;
  const size_t before_end = std::min<size_t>(bytes.size(), kCapacity - place);
  std::memcpy(memory_->bytes.data() + place, bytes.data(), before_end);
  std::memcpy(memory_->bytes.data(), bytes.data() + before_end, bytes.size() - before_end);
}

void SharedStream::copy_out(uint64_t at, std::span<std::byte> bytes) const noexcept {
  const uint64_t place = at % kCapacity;
  const size_t before_end = std::min<size_t>(bytes.size(), kCapacity - place);
  std::memcpy(bytes.data(), memory_->bytes.data() + place, before_end);
  std::memcpy(bytes.data() + before_end, memory_->bytes.data(), bytes.size() - before_end);
}

Progress SharedStream::write_some(std::span<const iovec> parts) {
  // Before the counters: whatever changes them from now on rings after it.
  answer_bell();
  if (other_gone_) return {Progress::Kind::kEnded};
  const uint64_t written = Counter(memory_->written).load(std::memory_order_relaxed);
  const uint64_t used = written - Counter(memory_->read).load(std::memory_order_acquire);
  if (used > kCapacity) return {Progress::Kind::kFailed, 0, "the memory between ranks is damaged"};
  uint64_t taken = 0;
  for (const iovec& part : parts) {
    const uint64_t n = std::min<uint64_t>(part.iov_len, kCapacity - used - taken);
    copy_in(written + taken, {static_cast<const std::byte*>(part.iov_base), n});
    taken += n;
  }
  if (taken == 0) return {Progress::Kind::kWaitReadable};
  Counter(memory_->written).store(written + taken, std::memory_order_release);
  ring_bell();
  return {Progress::Kind::kMoved, taken};
}

Progress SharedStream::read_some(std::span<std::byte> into) {
  answer_bell();
  const uint64_t read = Counter(memory_->read).load(std::memory_order_relaxed);
  const uint64_t there = Counter(memory_->written).load(std::memory_order_acquire) - read;
  if (there > kCapacity) return {Progress::Kind::kFailed, 0, "the memory between ranks is damaged"};
  const uint64_t n = std::min<uint64_t>(into.size(), there);
  if (n == 0) return {other_gone_ ? Progress::Kind::kEnded : Progress::Kind::kWaitReadable};
  copy_out(read, into.first(n));
  Counter(memory_->read).store(read + n, std::memory_order_release);
  ring_bell();
  return {Progress::Kind::kMoved, n};
}

}  // namespace headrace::cluster
