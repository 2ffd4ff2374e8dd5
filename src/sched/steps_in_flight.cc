#include "sched/steps_in_flight.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headrace {
namespace {

constexpr double kClearlyBetter = 1.05;

}  // namespace

void StepsInFlight::measured(double round_trip, std::span<const double> stage_seconds) noexcept {
  if (stage_seconds.empty()) return;
  const double computing = std::accumulate(stage_seconds.begin(), stage_seconds.end(), 0.0);
  const double slowest = *std::max_element(stage_seconds.begin(), stage_seconds.end());
  // Steps queue before busy stages; the least that was seen queued least. It rises slowly, should links become slower.
  const double other = std::max(round_trip - computing, 0.0);
  link_seconds_ = link_seconds_ < 0 ? other : std::min(other, link_seconds_ + 0.01 * (other - link_seconds_));
  if (slowest <= 0) return;
  const double to_fill = (computing + link_seconds_) / slowest;
  steps_to_fill_ = steps_to_fill_ == 0 ? to_fill : steps_to_fill_ + (to_fill - steps_to_fill_) / 16;
}

double StepsInFlight::rate(const CostModel& costs, const StepLoad& decodes, int32_t steps) const noexcept {
  double slowest = 0;
  double round_trip = std::max(link_seconds_, 0.0);
  for (size_t i = 0; i < costs.num_stages(); ++i) {
    const double seconds = costs.stage(i).fixed + costs.stage(i).marginal(decodes) / steps;
    slowest = std::max(slowest, seconds);
    round_trip += seconds;
  }
  return static_cast<double>(decodes.decode_rows) / steps / std::max(slowest, round_trip / steps);
}

void StepsInFlight::choose(const CostModel& costs, const StepLoad& decodes, bool prompts) noexcept {
  if (fixed_ > 0) return;
  if (costs.num_stages() == 1) {
    limit_ = 1;
    return;
  }
  const auto stages = static_cast<int32_t>(costs.num_stages());
  const auto rows = static_cast<int32_t>(std::min<int64_t>(decodes.decode_rows, most_));
  // Chunks of prompts wait for nothing: as many steps as fill the pipeline. Rounded down for a tenth, which is noise.
  const int32_t for_prompts = prompts ? std::max(stages, static_cast<int32_t>(std::ceil(steps_to_fill_ - 0.1))) : 1;
  const int32_t least = std::min(std::max(std::min(rows, stages), for_prompts), most_);
  const int32_t most = std::max(least, rows);
  const int32_t kept = std::clamp(limit_, least, most);
  int32_t best = kept;
  if (rows > 0) {
    double best_rate = rate(costs, decodes, kept) * kClearlyBetter;
    for (int32_t steps = least; steps <= most; ++steps) {
      const double r = rate(costs, decodes, steps);
      if (r > best_rate) {
        best = steps;
        best_rate = r;
      }
    }
  } else {
    best = least;
  }
  limit_ = best;
}

}  // namespace headrace
