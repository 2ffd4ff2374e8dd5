#pragma once

#include "cluster/rank_ring.h"

namespace headrace::cluster {

/// Runs a rank other than 0: loads its part as rank 0 says, then computes the steps of rank 0's plans until the ring
/// ends. Why it ended: kUnavailable where another rank is gone, as is usual. What makes loading fail is reported to
/// rank 0, and returned.
[[nodiscard]] Error run_rank(RankRing& ring);

}  // namespace headrace::cluster
