#include "cluster/node_probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "cluster/stop_watch.h"
#include "model/stage.h"

namespace headrace::cluster {
namespace {

constexpr std::array<int32_t, 5> kRows = {1, 4, 16, 48, 128};
/// Tokens that each row has before it. They share their blocks, whose content does not matter.
constexpr int32_t kContext = 256;
/// The least of several runs counts, as what disturbs only adds. Every number of rows has its turn in each round, and
/// rounds go on for a while, so that a disturbance of a second does not hit all runs of one.
///
/// A share of a core is another matter: a process that may run 5 of each 10 ms does short steps at full speed now and
/// then, and long ones never. So it is CPU time of which the least counts, times how much longer the clock says that
/// steps took: the least over windows that are long enough for such shares to be even.
constexpr double kWindowSeconds = 0.4;
constexpr int kLeastRounds = 2;
constexpr int kMostRounds = 12;
constexpr double kRoundsSeconds = 1.5;
/// No more rows once a step took more CPU time than this: a pause of the machine is no reason to know less of it.
constexpr double kLongStep = 0.25;

/// Rows that decode one token each, every one with a block of its own after those that all share.
StepPlan decode_plan(const ArchSpec& spec, int32_t rows, uint64_t step) {
  constexpr int32_t kShared = kContext / kBlockTokens;
  StepPlan plan;
  plan.epoch = EpochId{static_cast<uint32_t>(step)};
  plan.step_id = StepId{step};
  for (int32_t row = 0; row < rows; ++row) {
    const SequenceId sequence{static_cast<uint64_t>(row) + 1};
    plan.rows.push_back({.sequence = sequence, .first_pos = kContext, .num_tokens = 1, .num_outputs = 1});
    plan.tokens.push_back(TokenId{0});
    for (int32_t group = 0; group < static_cast<int32_t>(spec.cache_groups.size()); ++group) {
      TableChange change{.sequence = sequence, .group = group, .base_blocks = 0, .blocks = {}};
      for (int32_t block = 0; block < kShared; ++block) change.blocks.push_back(BlockId{block});
      change.blocks.push_back(BlockId{kShared + row});
      plan.table_changes.push_back(std::move(change));
    }
  }
  return plan;
}

/// How much longer steps take than their CPU time.
class Slowdown {
 public:
  void add(const StageTimes& step) noexcept {
    window_.compute += step.compute;
    window_.cpu += step.cpu;
    if (window_.compute < kWindowSeconds) return;
    least_ = std::min(least_, ratio());
    window_ = {};
  }
  [[nodiscard]] double factor() const noexcept { return std::isfinite(least_) ? least_ : ratio(); }

 private:
  [[nodiscard]] double ratio() const noexcept { return window_.compute / std::max(window_.cpu, 1e-9); }

  StageTimes window_;
  double least_ = std::numeric_limits<double>::infinity();
};

class Probe {
 public:
  Probe(const ProbeSite& site, const StageUnits& units, Slowdown& slowdown)
      : site_(site),
        slowdown_(slowdown),
        stage_(site.backend, site.spec,
               StageWeights(site.backend, site.pool, site.files, site.spec, site.numerics, units, {}), config(site),
               site.comm) {}

  /// CPU time of a step of each of `rows`; of the first ones only, where those with more take long.
  std::vector<double> run(std::span<const int32_t> rows) {
    std::vector<double> least(rows.size(), std::numeric_limits<double>::infinity());
    const StopWatch watch;
    for (int round = 0; round < kMostRounds; ++round) {
      for (size_t i = 0; i < least.size(); ++i) {
        const StageTimes step = step_times(rows[i]);
        slowdown_.add(step);
        least[i] = std::min(least[i], step.cpu);
        if (step.cpu > kLongStep) least.resize(i + 1);
      }
      if (round + 1 >= kLeastRounds && watch.seconds() > kRoundsSeconds) break;
    }
    return least;
  }

 private:
  static StageConfig config(const ProbeSite& site) {
    const int32_t blocks = kContext / kBlockTokens + kRows.back();
    return {.kv_dtype = site.kv_dtype,
            .group_blocks = std::vector<int32_t>(site.spec.cache_groups.size(), blocks),
            .max_tokens = kRows.back(),
            .max_seq_len = kContext + 1};
  }

  StageTimes step_times(int32_t rows) {
    const std::vector<float> activations(static_cast<size_t>(int64_t{rows} * site_.spec.hidden), 0.5f);
    const StepPlan plan = decode_plan(site_.spec, rows, ++steps_);
    const StopWatch watch;
    if (const auto ran = stage_.run(plan, activations, output_); !ran) throw ran.error();
    return watch.times();
  }

  const ProbeSite& site_;
  Slowdown& slowdown_;
  Stage stage_;
  StageOutput output_;
  uint64_t steps_ = 0;
};

}  // namespace

NodeCosts probe_node(const ProbeSite& site) {
  NodeCosts costs;
  costs.probe_bytes = model_units(site.spec, site.files, site.kv_dtype).sublayer_bytes(0, kSublayers);
  const int32_t end = kSublayers * site.spec.num_layers();
  Slowdown slowdown;
  const std::vector<double> layers = Probe(site, {.end_sublayer = kSublayers}, slowdown).run(kRows);
  const auto rows = std::span(kRows).first(layers.size());
  const std::vector<double> attentions = Probe(site, {.end_sublayer = 1}, slowdown).run(rows);
  const std::vector<double> outputs =
      Probe(site, {.first_sublayer = end, .end_sublayer = end, .output = true}, slowdown).run(rows);
  for (size_t i = 0; i < std::min(attentions.size(), outputs.size()); ++i) {
    // Measured one after the other, the part may seem to take longer than the whole.
    const double attention = std::min(attentions[i], layers[i]);
    costs.at.push_back({.rows = kRows[i],
                        .attention_seconds = attention * slowdown.factor(),
                        .feed_forward_seconds = (layers[i] - attention) * slowdown.factor(),
                        .output_seconds = outputs[i] * slowdown.factor()});
  }
  return costs;
}

}  // namespace headrace::cluster
