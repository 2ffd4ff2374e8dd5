#pragma once

#include "cluster/byte_stream.h"
#include "cluster/tcp_socket.h"

namespace headrace::cluster {

/// Bytes from one process to another on this machine through memory that both have mapped; a pair of sockets between
/// the two wakes whoever waits, and its end tells that the other is gone. The memory:
///
///   u64 written | zeros to 64 | u64 read | zeros to 128 | 1 MiB: byte i of the stream at i modulo its length
///
/// One process writes, one reads. What was written can still be read when the writer is gone.
class SharedStream final : public ByteStream {
 public:
  /// A new stream's memory: a file without a name. Throws Error(kOutOfMemory).
  [[nodiscard]] static Descriptor make_memory();

  /// `memory`: of make_memory(); it need not stay open. `bell`: this process's end of the sockets; not owned. Throws
  /// Error(kOutOfMemory).
  SharedStream(int memory, int bell);
  ~SharedStream() override;
  SharedStream(const SharedStream&) = delete;
  SharedStream& operator=(const SharedStream&) = delete;

  /// Either by the process that writes or by the one that reads. kWaitReadable is of the bell.
  [[nodiscard]] Progress write_some(std::span<const iovec> parts) override;
  [[nodiscard]] Progress read_some(std::span<std::byte> into) override;

 private:
  struct Memory;
  /// Takes what has rung until now.
  void answer_bell() noexcept;
  void ring_bell() const noexcept;
  void copy_in(uint64_t at, std::span<const std::byte> bytes) noexcept;
  void copy_out(uint64_t at, std::span<std::byte> bytes) const noexcept;

  Memory* memory_;
  int bell_;
  bool other_gone_ = false;
};

}  // namespace headrace::cluster
