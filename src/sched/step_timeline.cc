#include "sched/step_timeline.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/cat.h"
#include "base/error.h"
#include "base/log.h"

namespace headrace {
namespace {

std::string stage_arguments(const std::string& step, const StageSlice& stage) {
  return fmt::format(R"({},"wait_seconds":{:.6f},"serialise_seconds":{:.6f})", step, stage.wait, stage.serialise);
}

/// Of the process, as its log is.
struct Present {
  std::mutex mutex;
  std::shared_ptr<StepTimeline> timeline;
};
Present& present() {
  static Present present;
  return present;
}

}  // namespace

StepTimeline::StepTimeline(const std::string& path, int64_t max_bytes)
    : path_(path), max_bytes_(max_bytes), trace_(std::in_place, path) {}

void StepTimeline::add(const StepSlices& step) {
  const std::lock_guard lock(mutex_);
  if (!trace_) return;
  if (stages_.empty()) make_tracks(step);
  const std::string name = fmt::format("step {}", raw(step.step));
  const std::string arguments = fmt::format(R"("rows":{},"tokens":{})", step.rows, step.tokens);
  for (size_t i = 0; i < stages_.size(); ++i) {
    add_slice(stages_[i], name, step.stages[i].compute, stage_arguments(arguments, step.stages[i]));
  }
  if (step.output) {
    add_slice(stages_.front(), name + " output", step.output->compute, stage_arguments(arguments, *step.output));
  }
  for (size_t i = 0; i < links_.size(); ++i) add_slice(links_[i], name, step.links[i], arguments);
  if (!trace_->flush()) {
    log_warn("{}: could not be written; the timeline of steps ends with step {}", printable(path_), raw(step.step));
    trace_.reset();
  } else if (trace_->bytes() >= max_bytes_) {
    log_warn("{}: {} bytes are reached; the timeline of steps ends with step {}", printable(path_), max_bytes_,
             raw(step.step));
    close_locked();
  }
}

void StepTimeline::make_tracks(const StepSlices& step) {
  for (size_t i = 0; i < step.stages.size(); ++i) {
    stages_.push_back(trace_->add_track(fmt::format("stage {}", i)));
    if (step.links.empty()) continue;
    links_.push_back(trace_->add_track(i + 1 < step.stages.size() ? fmt::format("link {} to {}", i, i + 1)
                                                                  : fmt::format("link {} to head", i)));
  }
}

void StepTimeline::add_slice(TraceWriter::Track track, const std::string& name, TimeSlice slice,
                             const std::string& arguments) {
  // Whole nanoseconds, as they are written: a beginning and a length that are rounded apart could cross the next slice.
  const auto since_begin = [this](double seconds) { return std::round((seconds - begin_) * 1e9) * 1e-9; };
  trace_->add_span(track, name, since_begin(slice.begin), since_begin(slice.end), arguments);
}

void StepTimeline::close() {
  const std::lock_guard lock(mutex_);
  close_locked();
}

void StepTimeline::close_locked() {
  if (!trace_) return;
  try {
    trace_->close();
  } catch (const Error& error) {
    log_warn("{}", error.message());
  }
  trace_.reset();
}

void set_step_timeline(std::shared_ptr<StepTimeline> timeline) {
  const std::lock_guard lock(present().mutex);
  present().timeline = std::move(timeline);
}

std::shared_ptr<StepTimeline> step_timeline() {
  const std::lock_guard lock(present().mutex);
  return present().timeline;
}

}  // namespace headrace
