#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cluster/stop_watch.h"
#include "cluster/time_limits.h"

namespace headrace::cluster {

/// What a machine does on the way into a pipeline, one after the other.
struct StartPhase {
  std::string_view name;
  /// How long it may take; where it tells how far it is, how long between two signs of progress.
  double limit_seconds = 0;
  /// What helps where the machine did not do it.
  std::string_view remedy;
};

inline constexpr StartPhase kConnectPhase{
    "connect", kDialSeconds, "see that 'headrace worker' runs there and that its port can be reached from here"};
inline constexpr StartPhase kDescribePhase{"describe", 10,
                                           "a worker serves one head: end the other one, or see the worker's log"};
inline constexpr StartPhase kHashPhase{"hash model", 60,
                                       "see the worker's log, and whether its disk is slow or full ($HEADRACE_CACHE)"};
inline constexpr StartPhase kMeasurePhase{
    "measure", 60, "see whether the machine is busy with other work, or give it fewer threads (-t)"};
inline constexpr StartPhase kReachPhase{
    "reach", 30,
    "open the port to the machine before it in the pipeline, or say by --listen or --advertise where it is reached"};
inline constexpr StartPhase kSendPhase{
    "send weights", kStallSeconds,
    "see the network between the two and the worker's disk, or give the worker a copy by --model"};
inline constexpr StartPhase kPackPhase{
    "pack", 120, "see whether the machine swaps or is busy, or leave it fewer layers (--pipeline-layers)"};
inline constexpr StartPhase kReadyPhase{"ready", 30,
                                        "see the worker's log, and that all machines of the cluster reach each other"};

/// A phase of one machine: tells how far it is, and how it ended, in lines of the log. Threading: one thread at a time.
class PhaseReport {
 public:
  using Tell = std::function<void(const std::string&)>;
  /// `node`: "worker 10.0.0.2:8100". A line in between is told `pause` after the last one or the begin at the earliest.
  PhaseReport(std::string node, const StartPhase& phase, Tell tell,
              std::chrono::duration<double> pause = std::chrono::seconds(2));

  /// `share`: 0 to 1.
  void progress(double share);
  /// Of bytes that are sent.
  void progress_bytes(int64_t sent, int64_t all);
  /// The last line. `detail`: "33 MB packed"; empty: none.
  void done(const std::string& detail = {}) const;
  /// `error` of the phase: node, phase and, where it was too slow or could not be reached, limit and remedy.
  [[nodiscard]] Error failure(const Error& error) const;

 private:
  [[nodiscard]] bool is_time();
  void tell(const std::string& text) const { tell_(cat(node_, ": ", phase_.name, ": ", text)); }

  std::string node_;
  StartPhase phase_;
  Tell tell_;
  double pause_seconds_;
  StopWatch watch_;
  double told_ = 0;  ///< when the last line was, by the watch
};

}  // namespace headrace::cluster
