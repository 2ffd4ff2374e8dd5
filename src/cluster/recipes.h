#pragma once

#include <optional>
#include <string>

#include "base/isa.h"
#include "cluster/control_messages.h"
#include "ops/recipe.h"

namespace headrace::cluster {

/// All recipes by which this build computes a model with `numerics`: "bf16x32 v1, f32-lanes16 v1, ...", in the order of
/// their bytes.
[[nodiscard]] std::string recipes_text(Numerics numerics);

/// Why a worker cannot compute a part of what the head does with `numerics` on instruction set `isa`, with both values
/// and the remedy; nullopt: it can. Portable and exact numbers are those of every instruction set, fastest ones are
/// only promised among machines of one compute class.
[[nodiscard]] std::optional<std::string> recipe_obstacle(const NodeDescription& worker, Numerics numerics, Isa isa);

}  // namespace headrace::cluster
