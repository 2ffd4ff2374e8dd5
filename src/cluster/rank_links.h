#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cluster/rank_ring.h"

namespace headrace::cluster {

/// What carries the bytes between ranks on one machine.
enum class RankTransport { kSharedMemory, kTcp };
/// "shm", "tcp".
[[nodiscard]] std::optional<RankTransport> parse_rank_transport(std::string_view name) noexcept;

/// What a rank's two ends are made of; it can be handed to another process. Without memory the sockets carry the bytes.
struct RankDescriptors {
  Descriptor to_next, from_previous;
  Descriptor next_memory, previous_memory;
};

/// The descriptors of each of `ranks` ranks on this machine. Throws Error(kUnavailable), Error(kOutOfMemory).
[[nodiscard]] std::vector<RankDescriptors> make_rank_links(int32_t ranks, RankTransport transport);

/// Waits take at most `limit_seconds`. Throws Error(kOutOfMemory).
[[nodiscard]] RankRing open_rank_ring(RankPlace place, RankDescriptors descriptors, double limit_seconds);

}  // namespace headrace::cluster
