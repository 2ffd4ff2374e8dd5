#pragma once

#include <fmt/format.h>

#include <string>

namespace headrace {

/// The parts, formatted one after the other: cat("row ", 3, " of ", n).
template <class... Parts>
[[nodiscard]] std::string cat(const Parts&... parts) {
  std::string out;
  (fmt::format_to(std::back_inserter(out), "{}", parts), ...);
  return out;
}

}  // namespace headrace
