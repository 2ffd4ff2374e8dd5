#pragma once

#include <vector>

#include "cluster/nodes_file.h"
#include "cluster/placement_options.h"
#include "engine/load_figures.h"

namespace headrace::cluster {

/// What the engine's scheduler makes of a placement, in virtual time (engine/simulation.h): times are linear in tokens,
/// keys and outputs, as fitted around the steps that the load makes; what sampling costs the head is left out.
struct Prediction {
  LoadFigures load;
  double steps_in_flight = 0;      ///< mean
  double step_rows = 0;            ///< mean
  std::vector<double> stage_busy;  ///< of each node that holds something, in their order; while the middle half of all
                                   ///< tokens came
  std::vector<double> link_busy;   ///< from each of these to the next, the last to the head
};

/// Throws Error(kInvalidArgument) where a request of the load does not fit the KV cache.
[[nodiscard]] Prediction predict(const ModelUnits& model, const std::vector<DescribedNode>& nodes,
                                 const Placement& placement, const PlacementOptions& options,
                                 const PredictedLoad& load);

/// Bytes that a token's row takes on the link from the node to the next one that is used, or back to the head; 0 where
/// nothing is sent.
[[nodiscard]] int64_t link_token_bytes(const ModelUnits& model, const Placement& placement,
                                       const PlacementOptions& options, size_t node);

}  // namespace headrace::cluster
