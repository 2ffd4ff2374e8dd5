#include "cluster/prediction.h"

#include <algorithm>

#include "base/error.h"
#include "cluster/node_fit.h"
#include "engine/simulation.h"
#include "ops/kv_layout.h"

namespace headrace::cluster {
namespace {

/// Where further rows cost as much as the products take: beyond this, times rise in proportion.
constexpr int32_t kManyRows = 512;
/// What a head without layers still does for a step, and for a token, whose row it looks up: the scheduler's sums need
/// costs above 0.
constexpr double kStepSeconds = 1e-5;
constexpr double kLookupSeconds = 1e-7;

/// `logits_cross`: between machines, this one being one of both.
SimulatedCost stage_cost(const ModelUnits& model, const DescribedNode& node, const NodeShare& share, int32_t rows,
                         bool logits_cross) {
  const NodeCosts& costs = node.offer.costs;
  const SublayerBytes bytes = model.sublayer_bytes(share.units.first_sublayer, share.units.end_sublayer);
  int64_t key_bytes = 0;
  for (int32_t i = share.units.first_sublayer; i < share.units.end_sublayer; ++i) {
    key_bytes += model.sublayers[static_cast<size_t>(i)].kv_bytes_per_token;
  }
  return {
      .fixed = std::max(costs.fixed_seconds, kStepSeconds),
      .weights = costs.layer_seconds(bytes, rows),
      .per_token = std::max(costs.layer_seconds(bytes, kManyRows) / kManyRows, kLookupSeconds),
      // Keys and values are read once for each token that attends to them.
      .per_key = node.memory_bytes_per_second > 0 ? static_cast<double>(key_bytes) / node.memory_bytes_per_second : 0,
      .per_output =
          (share.units.output ? costs.output_seconds(rows) / rows : 0) + (logits_cross ? logits_seconds(model, 1) : 0)};
}

}  // namespace

int64_t link_token_bytes(const ModelUnits& model, const Placement& placement, const PlacementOptions& options,
                         size_t node) {
  const bool is_alone = placement.stages.size() == 1;
  const NodeShare& share = placement.nodes[node];
  if (!share.is_used() || is_alone) return 0;
  if (node > 0 && share.units.output) return int64_t{model.vocab_size} * static_cast<int64_t>(sizeof(float));
  return options.token_bytes > 0 ? options.token_bytes : model.hidden * static_cast<int64_t>(sizeof(float));
}

Prediction predict(const ModelUnits& model, const std::vector<DescribedNode>& nodes, const Placement& placement,
                   const PlacementOptions& options, const PredictedLoad& load) {
  SimulationConfig config;
  SimulatedMachine& machine = config.machine;
  std::vector<size_t> used;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (placement.nodes[i].is_used()) used.push_back(i);
  }
  const auto stages = static_cast<int32_t>(used.size());
  const int32_t clients = load.clients_of(nodes.size());
  const int32_t rows = std::max(1, clients / stages);
  for (const size_t i : used) {
    const bool logits_cross = !placement.output_on_head() && (i == 0 || placement.nodes[i].units.output);
    machine.stages.push_back(stage_cost(model, nodes[i], placement.nodes[i], rows, logits_cross));
    const NodeLink& link = nodes[i].offer.link;
    machine.links.push_back({.latency = link.round_trip_seconds / 2, .seconds_per_byte = 1 / link.bytes_per_second});
  }
  if (stages == 1) machine.links[0] = {};
  machine.token_bytes = static_cast<double>(link_token_bytes(model, placement, options, 0));
  machine.output_bytes = static_cast<double>(link_token_bytes(model, placement, options, used.back()));
  for (size_t g = 0; g < model.groups.size(); ++g) {
    const auto layers = std::ranges::count_if(model.sublayers, [&](const SublayerUnit& sublayer) {
      return sublayer.kv_bytes_per_token > 0 && sublayer.cache_group == static_cast<int32_t>(g);
    });
    machine.groups.push_back({.num_blocks = placement.group_blocks[g],
                              .window = model.groups[g].window,
                              .layers = static_cast<int32_t>(layers)});
  }
  machine.block_tokens = kBlockTokens;
  machine.max_step_tokens = options.max_step_tokens;
  config.scheduler.max_step_tokens = options.max_step_tokens;
  config.scheduler.max_num_seqs = std::max(clients, config.scheduler.max_num_seqs);
  config.scheduler.stage_costs = headrace::measured_costs(machine);
  config.clients = clients;
  config.load = make_load({.requests = clients * load.requests_per_client,
                           .prompt_tokens = load.prompt_tokens,
                           .output_tokens = load.output_tokens});
  const SimulationResult result = run_simulation(config);
  if (result.refused > 0) {
    throw Error(ErrorCode::kInvalidArgument, cat("requests of ", load.prompt_tokens, " + ", load.output_tokens,
                                                 " tokens do not fit the KV cache of ", placement.kv_tokens,
                                                 " tokens; lower --prompt or --output, or give the nodes more memory"));
  }
  const PipelineFigures figures = pipeline_figures(result);
  Prediction prediction{.load = load_figures(result.requests),
                        .steps_in_flight = figures.mean_in_flight,
                        .step_rows = figures.mean_rows,
                        .stage_busy = {},
                        .link_busy = figures.link_busy};
  for (const double idle : figures.steady_bubbles) prediction.stage_busy.push_back(1 - idle);
  return prediction;
}

}  // namespace headrace::cluster
