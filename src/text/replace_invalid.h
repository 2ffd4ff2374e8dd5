#pragma once

#include <string>
#include <string_view>

namespace headrace {

/// `bytes` with each longest beginning of a character that does not go on, and each other stray byte, replaced by
/// U+FFFD (Unicode 15, section 3.9, "substitution of maximal subparts").
[[nodiscard]] std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace headrace
