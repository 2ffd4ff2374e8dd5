#pragma once

#include <span>
#include <string>

namespace headrace {

/// headrace bench serve, headrace bench diff: the arguments after these words.
int command_bench_serve(std::span<const std::string> arguments);
int command_bench_diff(std::span<const std::string> arguments);

}  // namespace headrace
