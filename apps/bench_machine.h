#pragma once

#include <span>
#include <string>

namespace headrace {

/// `headrace bench machine`, with the arguments after "machine".
int command_bench_machine(std::span<const std::string> arguments);

}  // namespace headrace
