#pragma once

#include <cstddef>
#include <string_view>

namespace headrace {

/// Bytes of the well-formed UTF-8 sequence at the front of `text` (1 to 4); 0 if there is none (RFC 3629: no overlong
/// forms, no surrogates, nothing above U+10FFFF).
[[nodiscard]] size_t utf8_sequence_length(std::string_view text) noexcept;

/// Whether all of `text` is well-formed UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// Bytes at the end of `text` that may be the beginning of a character whose rest is still to come (0 to 3).
[[nodiscard]] size_t utf8_incomplete_tail(std::string_view text) noexcept;

}  // namespace headrace
