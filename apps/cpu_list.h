#pragma once

#include <string>

namespace headrace {

/// Keeps this process to the CPUs of a list such as "0-3,8"; an empty one: to those that it has. Before threads begin.
/// Throws Error(kInvalidArgument) for what is no list of CPUs that this process may use.
void bind_to_cpus(const std::string& list);

}  // namespace headrace
