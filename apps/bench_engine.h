#pragma once

#include <span>
#include <string>

namespace headrace {

/// `headrace bench engine`, with the arguments after "engine".
int command_bench_engine(std::span<const std::string> arguments);

}  // namespace headrace
