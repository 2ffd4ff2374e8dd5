#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cluster/node_costs.h"
#include "cluster/node_machine.h"
#include "model/stage_units.h"
#include "ops/recipe.h"

namespace headrace::cluster {

/// What a worker says of itself.
struct NodeDescription {
  std::string build = {};
  std::string isa = {};
  int32_t threads = 0;
  int64_t memory_bytes = 0;       ///< that weights, workspace and cache may take
  std::string data_address = {};  ///< where other workers reach it; empty: where the head does
  std::array<std::string, kAllNumerics.size()> recipes = {};  ///< recipes_text of each Numerics
};

// Values of control messages as JSON. The readers throw Error(kCorrupt), naming the field, for what a sane peer would
// not send.
[[nodiscard]] nlohmann::json to_json(const NodeDescription& description);
[[nodiscard]] NodeDescription read_description(const nlohmann::json& json);
[[nodiscard]] nlohmann::json to_json(const NodeCosts& costs);
[[nodiscard]] NodeCosts read_costs(const nlohmann::json& json);
[[nodiscard]] nlohmann::json to_json(const ComputeRules& rules);
[[nodiscard]] ComputeRules read_compute_rules(const nlohmann::json& json);
[[nodiscard]] nlohmann::json to_json(const StageUnits& units);
/// Of a model with so many layers: within it and not empty.
[[nodiscard]] StageUnits read_units(const nlohmann::json& json, int32_t num_layers);
[[nodiscard]] nlohmann::json to_json(const StageRules& rules);
/// Of a model of that architecture.
[[nodiscard]] StageRules read_stage_rules(const nlohmann::json& json, const ArchSpec& spec);

}  // namespace headrace::cluster
