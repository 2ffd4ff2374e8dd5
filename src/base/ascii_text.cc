#include "base/ascii_text.h"

#include <algorithm>

namespace headrace {

std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string_view ascii_trimmed(std::string_view text) noexcept {
  constexpr std::string_view kBlank = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

std::string hex_text(std::span<const unsigned char> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) out += {kDigits[byte >> 4], kDigits[byte & 15]};
  return out;
}

}  // namespace headrace
