#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cluster/rank_links.h"

namespace headrace::cluster {

inline constexpr RankTransport kAllRankTransports[]{RankTransport::kSharedMemory, RankTransport::kTcp};
[[nodiscard]] inline std::string transport_name(RankTransport transport) {
  return transport == RankTransport::kTcp ? "tcp" : "shared memory";
}

/// The rings of all ranks, in one process.
[[nodiscard]] inline std::vector<RankRing> connected_rings(int32_t ranks, RankTransport transport,
                                                           double limit_seconds = 60) {
  std::vector<RankDescriptors> links = make_rank_links(ranks, transport);
  std::vector<RankRing> rings;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    rings.push_back(open_rank_ring({rank, ranks}, std::move(links[static_cast<size_t>(rank)]), limit_seconds));
  }
  return rings;
}

/// `body(ring)` on a thread for each ring; waits for all.
inline void on_all_ranks(std::vector<RankRing>& rings, const std::function<void(RankRing&)>& body) {
  std::vector<std::jthread> threads;
  for (RankRing& ring : rings) threads.emplace_back([&] { body(ring); });
}

}  // namespace headrace::cluster
