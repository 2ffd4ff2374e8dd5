#include "engine/simulated_machine.h"

#include <algorithm>

#include "base/error.h"

namespace headrace {
namespace {

/// Sum over the row's positions p of min(p + 1, window).
int64_t attended(const PlanRow& row, int32_t window) {
  const int64_t n = row.num_tokens;
  const int64_t first = row.first_pos;
  const int64_t growing = window == 0 ? n : std::clamp<int64_t>(window - first, 0, n);
  return growing * first + growing * (growing + 1) / 2 + (n - growing) * window;
}

}  // namespace

void check_machine(const SimulatedMachine& machine) {
  if (machine.stages.empty() || machine.stages.size() != machine.links.size() || machine.groups.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                cat("simulated machine: ", machine.stages.size(), " stages, ", machine.links.size(), " links, ",
                    machine.groups.size(), " cache groups; expected at least one stage, a link for each, and a group"));
  }
}

PlanLimits plan_limits(const SimulatedMachine& machine) {
  PlanLimits limits{.num_groups = static_cast<int32_t>(machine.groups.size()),
                    .group_blocks = {},
                    .block_tokens = machine.block_tokens,
                    .vocab_size = machine.vocab_size,
                    .max_tokens = machine.max_step_tokens,
                    .max_seq_len = machine.max_seq_len};
  for (const SimulatedGroup& group : machine.groups) limits.group_blocks.push_back(group.num_blocks);
  return limits;
}

StepWork step_work(const SimulatedMachine& machine, const StepPlan& plan) {
  StepWork work{.tokens = static_cast<int64_t>(plan.tokens.size()), .keys = 0, .outputs = num_outputs(plan)};
  double layers = 0;
  for (const SimulatedGroup& group : machine.groups) {
    layers += group.layers;
    for (const PlanRow& row : plan.rows) work.keys += static_cast<double>(attended(row, group.window)) * group.layers;
  }
  work.keys /= layers;
  return work;
}

double simulated_seconds(const SimulatedCost& cost, const StepWork& work) noexcept {
  const auto tiles = static_cast<double>((work.tokens + kSimulatedTile - 1) / kSimulatedTile);
  const double tokens = cost.per_token * static_cast<double>(work.tokens) + cost.per_tile * tiles;
  return cost.fixed + std::max(cost.weights, tokens) + cost.per_key * work.keys +
         cost.per_output * static_cast<double>(work.outputs);
}

}  // namespace headrace
