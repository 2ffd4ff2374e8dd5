#pragma once

#include "cluster/link.h"

namespace headrace::cluster {

/// Longest that a peer may take over a frame that has begun. Machines that are gone are found sooner, by heartbeats.
inline constexpr double kStallSeconds = 20;
/// To reach a peer that should be there, and to open a data connection to it.
inline constexpr double kDialSeconds = 5;
/// Of waits for what may not come for long: whoever is idle sleeps, until the other end or close() ends the wait.
inline constexpr Deadline kNoDeadline = Deadline::max();

}  // namespace headrace::cluster
