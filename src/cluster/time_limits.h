#pragma once

namespace headrace::cluster {

/// Longest that a peer may take over a frame that has begun. Machines that are gone are found sooner, by heartbeats.
inline constexpr double kStallSeconds = 20;
/// Waits for a frame that may not come for long are cut into such: whoever is idle sleeps.
inline constexpr double kIdleSeconds = 3600;

}  // namespace headrace::cluster
