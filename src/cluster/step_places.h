#pragma once

#include <optional>
#include <vector>

#include "cluster/stage_times.h"
#include "sched/step_timeline.h"

namespace headrace::cluster {

/// A worker's clock as the head sees it. Both clocks run at nearly the same rate from beginnings that have nothing to
/// do with each other; every step bounds the difference from both sides: its plan left the head before the worker had
/// it, and its report left the worker before the head had it.
class WorkerClock {
 public:
  /// A plan that the head sent at `sent` was at the worker at `plan`; the report that left it at `report` was at the
  /// head at `received`. sent and received: the head's seconds; the others: the worker's.
  void observe(double sent, double plan, double report, double received) noexcept;
  /// The head's seconds of the worker's, wrong by at most error() while the clocks' rates differ by at most kDrift.
  [[nodiscard]] double on_head(double worker_seconds) const noexcept { return worker_seconds + (low_ + high_) / 2; }
  /// At most half the time that the last observed plan and report were on their way, both together.
  [[nodiscard]] double error() const noexcept { return (high_ - low_) / 2; }

  /// Seconds a second: clocks that are being set right may run at 500 parts of a million too fast or slow.
  static constexpr double kDrift = 1e-3;

 private:
  double low_ = 0, high_ = 0;  ///< the head's clock minus the worker's, as the last observation left it
  std::optional<double> observed_;
};

/// What the head knows of one worker's part of a step.
struct WorkerMoments {
  StageReport report = {};
  double received = 0;  ///< the report, by the head's clock
};

/// When the head did its own part of a step, by its clock (steady_seconds()).
struct HeadMoments {
  double plan_sent = 0;  ///< at the latest
  StageSlice first = {};
  double rows_sent = 0;                   ///< the first stage's rows were given to the link
  double returned = 0;                    ///< what the last stage made was here
  std::optional<StageSlice> output = {};  ///< where the head computes it
};

/// Places what the machines of a pipeline did in its steps on the head's clock. Steps come in their order, in which
/// workers and links have them too: a slice that would begin before the one before it on its machine or link has ended
/// is shortened by what the clocks are wrong.
class StepPlaces {
 public:
  explicit StepPlaces(size_t workers) : clocks_(workers), stage_ends_(workers), link_ends_(workers + 1) {}

  /// Stages and links of a step; its name and numbers are the caller's to add.
  [[nodiscard]] StepSlices place(const HeadMoments& head, const std::vector<WorkerMoments>& workers);

 private:
  std::vector<WorkerClock> clocks_;
  std::vector<double> stage_ends_, link_ends_;  ///< of the last slices
};

}  // namespace headrace::cluster
