#include "sched/cost_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace headrace {
namespace {

constexpr double kForgetting = 0.95;       // a step counts half after 14 more that say the same thing
constexpr double kStartVariance = 100.0;   // of a factor: the starting figures may be wrong ten times
constexpr int64_t kTrustingSteps = 8;      // of the first steps, before there is a usual error
constexpr double kOutlier = 4.0;           // errors beyond so many usual ones are cut
constexpr double kLeastUsualError = 0.01;  // clocks and caches are no steadier than that
constexpr double kMostUsualError = 1.0;    // nor is anything learned from errors that are larger still
constexpr double kLeastFactor = 1e-3;      // no cost falls to zero or below, or shares of it would mean nothing
/// Of the usual costs: with less to scale, a stage that was measured in a bad moment, and seems to cost nothing, would
/// hardly learn.
constexpr double kLeastShare = 0.1;
constexpr double kMovingMean = 1.0 / 16;
constexpr double kLateShare = 0.005;  // of steps that take longer than the late ratio says
constexpr double kLateStep = 0.05;    // by which it moves for a late one; others take it back
constexpr double kMostLateRatio = 2.0;

constexpr double StageCost::*kCosts[] = {&StageCost::fixed, &StageCost::per_decode_row, &StageCost::per_prompt_token,
                                         &StageCost::per_attended_key, &StageCost::per_read_key};

}  // namespace

void StepLoad::add_decode(int32_t position) noexcept {
  ++decode_rows;
  attended_keys += position + 1;
  read_keys += position + 1;
}

void StepLoad::add_chunk(int32_t first_pos, int32_t num_tokens) noexcept {
  const int64_t n = num_tokens;
  prompt_tokens += n;
  attended_keys += n * first_pos + n * (n + 1) / 2;
  if (n > 0) read_keys += first_pos + n;
}

void StepLoad::add(const StepLoad& other) noexcept {
  decode_rows += other.decode_rows;
  prompt_tokens += other.prompt_tokens;
  attended_keys += other.attended_keys;
  read_keys += other.read_keys;
}

double StageCost::marginal(const StepLoad& load) const noexcept {
  return per_decode_row * static_cast<double>(load.decode_rows) +
         per_prompt_token * static_cast<double>(load.prompt_tokens) +
         per_attended_key * static_cast<double>(load.attended_keys) +
         per_read_key * static_cast<double>(load.read_keys);
}

int64_t StageCost::chunk_for(double seconds, int32_t first_pos) const noexcept {
  seconds -= per_read_key * first_pos;
  if (seconds <= 0) return 0;
  // n tokens from first_pos on take n * linear + n^2 * per_attended_key / 2 beyond that: the root, in the form that
  // stays exact where the square hardly counts.
  const double linear = per_prompt_token + per_read_key + per_attended_key * (first_pos + 0.5);
  const double n = 2 * seconds / (linear + std::sqrt(linear * linear + 2 * per_attended_key * seconds));
  return static_cast<int64_t>(std::min(n, 1e9));
}

CostModel::CostModel(std::span<const StageCost> start) {
  HR_CHECK(!start.empty(), "costs of no stage");
  const StageCost usual;
  for (const StageCost& cost : start) {
    Fit fit;
    fit.cost = cost;
    fit.recent_seconds = cost.fixed;
    for (size_t i = 0; i < kTerms; ++i) {
      double StageCost::*const term = kCosts[i];
      fit.start.*term = std::max(cost.*term, kLeastShare * usual.*term);
      fit.factor[i] = cost.*term / (fit.start.*term);
    }
    for (size_t i = 0; i < kTerms; ++i) {
      fit.covariance[i].fill(0.0);
      fit.covariance[i][i] = kStartVariance;
    }
    fits_.push_back(fit);
  }
  find_slowest();
}

void CostModel::find_slowest() noexcept {
  const auto longer = [](const Fit& a, const Fit& b) { return a.recent_seconds < b.recent_seconds; };
  slowest_ = static_cast<size_t>(std::max_element(fits_.begin(), fits_.end(), longer) - fits_.begin());
}

void CostModel::learn(const StepLoad& load, std::span<const double> stage_seconds) {
  if (stage_seconds.size() != fits_.size()) return;
  for (size_t i = 0; i < fits_.size(); ++i) {
    if (stage_seconds[i] > 0 && std::isfinite(stage_seconds[i])) learn(fits_[i], load, stage_seconds[i]);
  }
  find_slowest();
}

void CostModel::learn(Fit& fit, const StepLoad& load, double measured) {
  const double predicted = fit.cost.seconds(load);
  const double raw_error = (measured - predicted) / measured;
  const double size = std::min(std::abs(raw_error), 1.0);
  fit.error = fit.steps == 0 ? size : fit.error + (size - fit.error) * kMovingMean;
  fit.recent_seconds += (predicted - fit.recent_seconds) * kMovingMean;
  if (load.prompt_tokens > 0 && load.decode_rows > 0 && fit.steps >= kTrustingSteps) {
    const bool is_late = measured > fit.late_ratio * predicted;
    fit.late_ratio += kLateStep * (is_late ? 1 - kLateShare : -kLateShare);
    fit.late_ratio = std::clamp(fit.late_ratio, 1.0, kMostLateRatio);
  }

  // Steps that are out of all proportion are cut to the limit, which grows if they go on: a machine that has become
  // slower is believed after some steps, a single hiccup never.
  double error = raw_error;
  if (++fit.steps > kTrustingSteps) {
    const double limit = kOutlier * std::max(fit.usual_error, kLeastUsualError);
    error = std::clamp(raw_error, -limit, limit);
  }
  fit.usual_error = std::min(fit.usual_error + (std::abs(error) - fit.usual_error) * kMovingMean, kMostUsualError);

  // What share of the measured time a unit factor would explain: the fit minimises relative errors.
  const std::array<double, kTerms> x{
      fit.start.fixed / measured,
      fit.start.per_decode_row * static_cast<double>(load.decode_rows) / measured,
      fit.start.per_prompt_token * static_cast<double>(load.prompt_tokens) / measured,
      fit.start.per_attended_key * static_cast<double>(load.attended_keys) / measured,
      fit.start.per_read_key * static_cast<double>(load.read_keys) / measured,
  };
  std::array<double, kTerms> gain{};  // covariance * x
  double spread = 0;                  // x * covariance * x
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t j = 0; j < kTerms; ++j) gain[i] += fit.covariance[i][j] * x[j];
    spread += gain[i] * x[i];
  }
  if (!(spread > 0)) return;
  for (size_t i = 0; i < kTerms; ++i) {
    fit.factor[i] += gain[i] * error / (1 + spread);
  }
  // Directional forgetting (R. Kulhavy, "Restricted exponential forgetting in real-time identification", 1987): the
  // covariance changes along x only, so hours of decode steps neither wear down nor blow up what is known of prompts.
  const double shrink = (kForgetting * spread - (1 - kForgetting)) / (kForgetting * spread * (1 + spread));
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t j = 0; j < kTerms; ++j) fit.covariance[i][j] -= shrink * gain[i] * gain[j];
  }
  keep_positive(fit);
  for (size_t i = 0; i < kTerms; ++i) fit.cost.*kCosts[i] = fit.start.*kCosts[i] * fit.factor[i];
}

void CostModel::keep_positive(Fit& fit) noexcept {
  for (size_t round = 0; round < 2 * kTerms; ++round) {
    const auto least = static_cast<size_t>(std::ranges::min_element(fit.factor) - fit.factor.begin());
    const double missing = kLeastFactor - fit.factor[least];
    if (missing <= 0) return;
    for (size_t i = 0; i < kTerms; ++i) {
      fit.factor[i] += fit.covariance[i][least] / fit.covariance[least][least] * missing;
    }
    fit.factor[least] = kLeastFactor;
  }
  for (double& factor : fit.factor) factor = std::max(factor, kLeastFactor);
}

}  // namespace headrace
