#pragma once

#include "engine/engine.h"
#include "headrace/headrace.h"

namespace headrace {

/// The engine that the options ask for, for one sequence at a time. Throws Error for a class that the machine lacks and
/// for unknown names.
[[nodiscard]] EngineConfig engine_config(const LoadOptions& options);

}  // namespace headrace
