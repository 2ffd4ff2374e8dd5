#pragma once

#include <string>
#include <string_view>

#include "cluster/link.h"

namespace headrace::cluster {

struct LinkMeasure {
  double round_trip_s = 0;  ///< of an empty frame and its echo: the shortest of several
  double bytes_per_s = 0;   ///< in the direction from the measuring side
};

/// Purpose (handshake.h) of links that are measured.
inline constexpr std::string_view kMeasurePurpose = "measure";

/// Measures a link to a peer that runs answer_measuring: echoes, then rounds of more and more bytes, up to 0.25 MB or
/// about 0.3 s in all. The link can be used on. An error names `from` (this side) and the peer.
[[nodiscard]] Result<LinkMeasure> measure_link(Link& link, const std::string& from, Deadline deadline);

/// Serves measure_link on the other side until it ends.
[[nodiscard]] Result<std::monostate> answer_measuring(Link& link, Deadline deadline);

}  // namespace headrace::cluster
