#pragma once

#include <string>
#include <vector>

#include "client/load_run.h"

namespace headrace::client {

struct ServeFigures;

/// What a reader of the figures must know: requests that failed and why, counts that do not agree, a first event that
/// is no text, a client that was too slow. One sentence each.
[[nodiscard]] std::vector<std::string> run_warnings(const LoadRun& run, const ServeFigures& figures);

}  // namespace headrace::client
