#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headrace {

/// `text` with the letters A to Z in lower case; other bytes stay as they are.
[[nodiscard]] std::string ascii_lower(std::string_view text);

/// `text` without the blanks, tabs and line ends at its ends.
[[nodiscard]] std::string_view ascii_trimmed(std::string_view text) noexcept;

/// Two hexadecimal digits for each byte, in lower case.
[[nodiscard]] std::string hex_text(std::span<const unsigned char> bytes);

}  // namespace headrace
