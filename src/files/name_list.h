#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "base/error.h"

namespace headrace {

/// "a, b and 3 more": the first `most` of `names`, as they may be printed.
[[nodiscard]] inline std::string name_list(std::span<const std::string> names, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) text += cat(i ? ", " : "", printable(names[i]));
  return names.size() > most ? cat(text, " and ", names.size() - most, " more") : text;
}

}  // namespace headrace
