#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cluster/prediction.h"

namespace headrace {

/// All that `headrace plan` found.
struct PlanFindings {
  std::string model;
  cluster::ModelUnits units;
  std::vector<cluster::DescribedNode> nodes;
  cluster::PlacementOptions options;
  cluster::PredictedLoad load;
  cluster::Placement placement;
  cluster::Prediction prediction;
  std::vector<cluster::NodeLoss> losses;
  std::vector<std::optional<double>> loss_rates;  ///< output tokens a second after each; none: requests do not fit
};

/// "embedding, layers 0-9, output"; "nothing".
[[nodiscard]] std::string units_text(const StageUnits& units);

/// The report for a person.
[[nodiscard]] std::string plan_text(const PlanFindings& findings);

/// The same with every figure, in bytes, seconds, tokens and shares of 1.
[[nodiscard]] nlohmann::ordered_json plan_json(const PlanFindings& findings);

/// A picture: for each node its units, memory and step time as bars. An SVG file.
[[nodiscard]] std::string plan_svg(const PlanFindings& findings);

}  // namespace headrace
