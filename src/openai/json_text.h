#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::openai {

/// Appends `text` as it stands between the quotes of a JSON string. What is appended is UTF-8 always: each byte that
/// begins no character becomes U+FFFD.
void append_json_text(std::string& out, std::string_view text);

/// Appends a number in decimal.
void append_number(std::string& out, int64_t number);

}  // namespace headrace::openai
