#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/byte_stream.h"
#include "cluster/link.h"
#include "cluster/tcp_socket.h"
#include "model/comm.h"

namespace headrace::cluster {

/// A rank's end of the way to or from a neighbour: over a network or by shared memory.
struct RankEnd {
  Descriptor socket;  ///< that is polled while `stream` waits
  std::unique_ptr<ByteStream> stream;
};

/// The ranks of a stage in a ring: each sends to the next and receives from the one before. A message is
///
///   magic u32 | number u32, from 0 on, modulo 2^32 | bytes u64 | that many bytes        little-endian
///
/// so that ranks that lose step are found. Waits end when a neighbour is gone and, but where said, after
/// `limit_seconds`. The first fault is the last: from then on every call does nothing. Threading: one thread.
class RankRing {
 public:
  RankRing(RankPlace place, RankEnd to_next, RankEnd from_previous, double limit_seconds);

  [[nodiscard]] RankPlace place() const noexcept { return place_; }
  [[nodiscard]] const std::optional<Error>& fault() const noexcept { return fault_; }

  /// Ends the ring for all ranks: their next call is a fault. From any thread, while the ring is there.
  void shut_down() noexcept;
  /// Whether a neighbour is seen to be gone, or the ring has ended. From any thread.
  [[nodiscard]] bool is_broken() const noexcept;

  /// Of the waits from now on.
  void limit(double seconds) noexcept { limit_seconds_ = seconds; }

  /// Sends `out` and receives `in`, as long as what the one before sends, at the same time. Empty ones do not cross.
  void exchange(std::span<const std::byte> out, std::span<std::byte> in) noexcept;
  /// Blocks of all ranks, of which this one has filled its own: fills the others. `to_first`: those of rank 0 alone.
  void gather(std::span<const std::span<std::byte>> blocks, bool to_first) noexcept;
  /// Rank 0's bytes, in `data` on every rank.
  void broadcast(std::span<std::byte> data) noexcept;

  /// Sends `message` from rank 0 to all others, which get it from take_order().
  void give_order(std::span<const std::byte> message) noexcept;
  /// The next order of at most `most_bytes`, for which it waits without a limit. False at a fault: also when rank 0 has
  /// ended.
  [[nodiscard]] bool take_order(std::vector<std::byte>& message, size_t most_bytes) noexcept;

 private:
  struct Outgoing;
  struct Incoming;
  /// Both at the same time, until both are complete or there is a fault.
  void move(Outgoing out, Incoming in) noexcept;
  [[nodiscard]] Progress send_some(Outgoing& out);
  [[nodiscard]] Progress receive_some(Incoming& in);
  /// Whether bytes moved; the kind of event to wait for, or a fault, otherwise.
  [[nodiscard]] bool took(const Progress& progress, int32_t neighbour, short& events);
  /// The head of `in` is complete: checks it.
  void read_head(Incoming& in);
  void fail(ErrorCode code, int32_t rank, const std::string& what);
  [[nodiscard]] int32_t next() const noexcept { return (place_.rank + 1) % place_.ranks; }
  [[nodiscard]] int32_t previous() const noexcept { return (place_.rank + place_.ranks - 1) % place_.ranks; }

  RankPlace place_;
  RankEnd to_next_, from_previous_;
  double limit_seconds_;
  uint32_t num_sent_ = 0, num_received_ = 0;
  std::optional<Error> fault_;
};

}  // namespace headrace::cluster
