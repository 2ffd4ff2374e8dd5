#pragma once

#include <cstddef>
#include <string>

namespace headrace::openai {

/// Letters and digits at random, from the system's source: unique for all purposes where there are 24 of them.
[[nodiscard]] std::string random_name(size_t length);

}  // namespace headrace::openai
