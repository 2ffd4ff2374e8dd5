#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/simulation.h"

namespace headrace {

/// The report for a person.
[[nodiscard]] std::string simulation_text(const SimulationConfig& config, const SimulationResult& result);

/// The same with every figure, in seconds, tokens and shares of 1.
[[nodiscard]] nlohmann::ordered_json simulation_json(const SimulationConfig& config, const SimulationResult& result);

}  // namespace headrace
