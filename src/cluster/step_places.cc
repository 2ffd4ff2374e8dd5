#include "cluster/step_places.h"

#include <algorithm>

#include "base/check.h"

namespace headrace::cluster {
namespace {

/// The slice, after the last one of its track and not ending before it begins.
TimeSlice after_last(TimeSlice slice, double& last_end) {
  slice.begin = std::max(slice.begin, last_end);
  slice.end = std::max(slice.begin, slice.end);
  last_end = slice.end;
  return slice;
}

}  // namespace

void WorkerClock::observe(double sent, double plan, double report, double received) noexcept {
  const double low = sent - plan;
  const double high = received - report;
  const double drift = observed_ ? kDrift * std::max(received - *observed_, 0.0) : 0;
  const bool is_first = !observed_;
  observed_ = received;
  const double lowest = std::max(low, low_ - drift);
  const double highest = std::min(high, high_ + drift);
  // Bounds that contradict each other: a clock has jumped, and what was known is worth nothing any more.
  const bool forget = is_first || lowest > highest;
  low_ = forget ? low : lowest;
  high_ = forget ? high : highest;
}

StepSlices StepPlaces::place(const HeadMoments& head, const std::vector<WorkerMoments>& workers) {
  HR_CHECK(workers.size() == clocks_.size(), workers.size(), " workers of ", clocks_.size());
  StepSlices slices;
  slices.stages.push_back(head.first);
  slices.output = head.output;
  double sent = head.rows_sent;
  for (size_t i = 0; i < workers.size(); ++i) {
    const auto& [seconds, moments] = workers[i].report;
    WorkerClock& clock = clocks_[i];
    clock.observe(head.plan_sent, moments.plan, moments.sent, workers[i].received);
    slices.links.push_back(after_last({sent, clock.on_head(moments.rows)}, link_ends_[i]));
    const double begin = clock.on_head(moments.begin);
    slices.stages.push_back({.compute = after_last({begin, begin + seconds.compute}, stage_ends_[i]),
                             .wait = seconds.wait,
                             .serialise = seconds.serialise});
    sent = clock.on_head(moments.sent);
  }
  slices.links.push_back(after_last({sent, head.returned}, link_ends_.back()));
  return slices;
}

}  // namespace headrace::cluster
