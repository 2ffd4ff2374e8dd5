#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/steady_seconds.h"
#include "base/trace_writer.h"

namespace headrace {

/// From when to when something was done, in steady_seconds().
struct TimeSlice {
  double begin = 0, end = 0;
  bool operator==(const TimeSlice&) const = default;
};

/// What a stage did in a step.
struct StageSlice {
  TimeSlice compute = {};
  double wait = 0;       ///< for rows of the stage before, seconds
  double serialise = 0;  ///< between the floats of the stage and the bytes of frames, seconds
};

/// Where and when a step that has completed was computed.
struct StepSlices {
  StepId step{};
  size_t rows = 0, tokens = 0;
  std::vector<StageSlice> stages = {};
  std::optional<StageSlice> output = {};  ///< computed by the first stage's machine when the rows have come back
  std::vector<TimeSlice> links = {};  ///< from stage i to the next, from the last one to the head; empty: one machine
};

/// Writes where steps were computed to a file that ui.perfetto.dev shows, with the tracks that a simulation's timeline
/// has: "stage 0", "link 0 to 1", ... Whoever adds steps sees to it that slices of one track do not overlap.
/// Every step that was added is in the file even if this process is killed; only the closing bracket is then missing,
/// which the format allows. At `max_bytes`, or when the file cannot be written, it warns and ends the file.
/// Threading: every function from any thread.
class StepTimeline {
 public:
  static constexpr int64_t kMaxBytes = int64_t{1} << 30;
  /// Throws Error where the file cannot be written.
  explicit StepTimeline(const std::string& path, int64_t max_bytes = kMaxBytes);

  void add(const StepSlices& step);
  /// Ends the file; steps added later are dropped.
  void close();

 private:
  void make_tracks(const StepSlices& step);
  void add_slice(TraceWriter::Track track, const std::string& name, TimeSlice slice, const std::string& arguments);
  void close_locked();

  const std::string path_;
  const int64_t max_bytes_;
  const double begin_ = steady_seconds();
  std::mutex mutex_;
  std::optional<TraceWriter> trace_;  ///< none once the file is ended
  std::vector<TraceWriter::Track> stages_, links_;
};

/// Where this process writes the steps of the models that it loads from now on; null: nowhere, as at first.
void set_step_timeline(std::shared_ptr<StepTimeline> timeline);
[[nodiscard]] std::shared_ptr<StepTimeline> step_timeline();

}  // namespace headrace
