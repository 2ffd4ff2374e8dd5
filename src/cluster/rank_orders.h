#pragma once

#include <string>

#include "cluster/node_machine.h"
#include "cluster/rank_ring.h"

namespace headrace::cluster {

/// Longest that a rank may keep its neighbours waiting within a step, between two exchanges.
inline constexpr double kRankSeconds = 60;
/// Longest that a rank may still pack weights when rank 0 has packed its own.
inline constexpr double kRankLoadSeconds = 900;

/// The first order: what a rank is to load. Afterwards each rank reports, the second order is StageRules, each reports
/// again, and all further orders are plans (step/plan_codec.h).
struct RankSetup {
  std::string path;  ///< of the model, on the rank's machine
  Isa isa = Isa::kRef;
  int threads = 1;
  ComputeRules rules{};
};
/// Orders of rank 0, as JSON. Reading waits without a limit and throws Error: that of the ring, or kCorrupt.
void send_setup(RankRing& ring, const RankSetup& setup);
[[nodiscard]] RankSetup receive_setup(RankRing& ring);
void send_stage_rules(RankRing& ring, const StageRules& rules);
[[nodiscard]] StageRules receive_stage_rules(RankRing& ring, const ArchSpec& spec);

/// Bytes that a rank holds, in device memory and of the file.
struct RankBytes {
  int64_t packed = 0, file = 0;
  RankBytes& operator+=(const RankBytes& other) noexcept {
    packed += other.packed;
    file += other.file;
    return *this;
  }
};
/// What a rank other than 0 has done, or why it could not.
void send_report(RankRing& ring, const Result<RankBytes>& report);
/// Rank 0: the sum of what the others report. Throws Error: that of the first that could not, or of the ring.
[[nodiscard]] RankBytes receive_reports(RankRing& ring);

}  // namespace headrace::cluster
