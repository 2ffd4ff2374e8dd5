#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/engine.h"

namespace headrace {

/// What `headrace inspect` tells of a model, as JSON. Throws LoadError.
[[nodiscard]] nlohmann::ordered_json model_report(const ModelFiles& files, const Engine& engine,
                                                  const EngineConfig& config);

/// The same for people.
[[nodiscard]] std::string report_text(const nlohmann::ordered_json& report);

}  // namespace headrace
