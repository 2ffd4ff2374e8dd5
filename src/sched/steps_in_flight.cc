#include "sched/steps_in_flight.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headrace {
namespace {

constexpr double kClearlyBetter = 1.05;

}  // namespace

void StepsInFlight::measured(double round_trip, std::span<const double> stage_seconds, int32_t steps_out) noexcept {
  if (stage_seconds.empty()) return;
  const double computing = std::accumulate(stage_seconds.begin(), stage_seconds.end(), 0.0);
  const double slowest = *std::max_element(stage_seconds.begin(), stage_seconds.end());
  slowest_.push_back(slowest);
  if (std::ssize(slowest_) > std::max(most_, fixed_)) slowest_.pop_front();
  // Steps queue before busy stages: then a round trip takes as long as the slowest stage needs for all that are out,
  // and says only what the rest takes at most. These may have taken longer than this one: they had more rows, or their
  // machine had not all of its time for them.
  const double other = std::max(round_trip - computing, 0.0);
  const auto ahead = slowest_.end() - std::min<ptrdiff_t>(steps_out, std::ssize(slowest_));
  const bool queued = std::accumulate(ahead, slowest_.end(), 0.0) > 0.9 * round_trip;
  if (link_seconds_ < 0 || other < link_seconds_) {
    link_seconds_ = other;
  } else if (!queued) {
    link_seconds_ += (other - link_seconds_) / 16;
  }
  if (slowest <= 0) return;
  const double to_fill = (computing + link_seconds_) / slowest;
  steps_to_fill_ = steps_to_fill_ == 0 ? to_fill : steps_to_fill_ + (to_fill - steps_to_fill_) / 16;
}

double StepsInFlight::rate(const CostModel& costs, const StepLoad& decodes, int32_t steps,
                           double target) const noexcept {
  double slowest = 0;
  double computing = 0;
  for (size_t i = 0; i < costs.num_stages(); ++i) {
    const double seconds = costs.stage(i).fixed + costs.stage(i).marginal(decodes) / steps;
    slowest = std::max(slowest, seconds);
    computing += seconds;
  }
  const double filled = std::max(1.0, target / slowest);
  slowest *= filled;
  const double round_trip = std::max(link_seconds_, 0.0) + computing * filled;
  return static_cast<double>(decodes.decode_rows) / steps / std::max(slowest, round_trip / steps);
}

void StepsInFlight::choose(const CostModel& costs, const StepLoad& decodes, bool prompts,
                           const std::function<double(int32_t)>& target_seconds) noexcept {
  if (fixed_ > 0) return;
  if (costs.num_stages() == 1) {
    limit_ = 1;
    return;
  }
  const auto stages = static_cast<int32_t>(costs.num_stages());
  const auto rows = static_cast<int32_t>(std::min<int64_t>(decodes.decode_rows, most_));
  if (rows == 0) {
    // Chunks of prompts wait for nothing: as many steps as fill the pipeline. Rounded down for a tenth, which is noise.
    const auto to_fill = static_cast<int32_t>(std::ceil(steps_to_fill_ - 0.1));
    limit_ = prompts ? std::min(std::max(stages, to_fill), most_) : 1;
    return;
  }
  const int32_t least = std::min(prompts ? stages : std::min(rows, stages), most_);
  const int32_t most = std::max(least, rows);
  const int32_t kept = std::clamp(limit_, least, most);
  const auto rate_of = [&](int32_t steps) { return rate(costs, decodes, steps, prompts ? target_seconds(steps) : 0); };
  int32_t best = kept;
  double best_rate = rate_of(kept) * kClearlyBetter;
  for (int32_t steps = least; steps <= most; ++steps) {
    const double r = rate_of(steps);
    if (r > best_rate) {
      best = steps;
      best_rate = r;
    }
  }
  limit_ = best;
}

}  // namespace headrace
