#pragma once

#include <string>
#include <string_view>

namespace headrace::server {

/// `text` as a JSON string with its quotation marks. Control characters, those of Unicode that begin a line or turn its
/// direction too, and bytes that are no UTF-8 are escaped, so that it stays within one line; cut after `max_bytes`.
[[nodiscard]] std::string quoted(std::string_view text, size_t max_bytes = 256);

/// `text` as the value in name=value: as it is where it is one plain word, "-" where it is empty, quoted() else.
[[nodiscard]] std::string plain_or_quoted(std::string_view text, size_t max_bytes = 256);

}  // namespace headrace::server
