#include "openai/json_text.h"

#include <array>
#include <charconv>

#include "base/utf8.h"

namespace headrace::openai {
namespace {

/// Bytes that stand for themselves: ASCII but for control characters, quote and backslash.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

void append_escape(std::string& out, char c) {
  switch (c) {
    case '"':
    case '\\':
      out += '\\';
      out += c;
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      constexpr char kDigits[] = "0123456789abcdef";
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[static_cast<unsigned char>(c) & 15];
  }
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  size_t done = 0;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (kPlain[c]) {
      ++i;
      continue;
    }
    const size_t length = c < 0x80 ? 0 : utf8_sequence_length(text.substr(i));
    if (length > 0) {
      i += length;
      continue;
    }
    out.append(text, done, i - done);
    if (c < 0x80) {
      append_escape(out, text[i]);
    } else {
      out += "\xEF\xBF\xBD";
    }
    done = ++i;
  }
  out.append(text, done);
}

void append_number(std::string& out, int64_t number) {
  char digits[24];
  const auto [end, status] = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end);
}

}  // namespace headrace::openai
