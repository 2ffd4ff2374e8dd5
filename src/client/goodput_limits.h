#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headrace::client {

/// Limits of a good request, in milliseconds.
struct GoodputLimits {
  std::optional<double> ttft, tpot, e2el;
  [[nodiscard]] bool any() const noexcept { return ttft || tpot || e2el; }
};
/// From texts like "ttft:200". Throws Error(kInvalidArgument) for others.
[[nodiscard]] GoodputLimits read_goodput(const std::vector<std::string>& texts);

}  // namespace headrace::client
