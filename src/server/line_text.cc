#include "server/line_text.h"

#include <algorithm>

#include "base/utf8.h"

namespace headrace::server {
namespace {

void append_escape(unsigned code_unit, std::string& out) {
  out += "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) out += "0123456789abcdef"[(code_unit >> shift) & 15];
}

/// Of a sequence of two or three bytes.
unsigned code_point(std::string_view sequence) {
  const auto bits = [&](size_t i, unsigned mask) { return static_cast<unsigned char>(sequence[i]) & mask; };
  if (sequence.size() == 2) return bits(0, 0x1f) << 6 | bits(1, 0x3f);
  return bits(0, 0x0f) << 12 | bits(1, 0x3f) << 6 | bits(2, 0x3f);
}

/// Whether a viewer could take it for the end of a line, or show the rest of the line in another order.
bool disturbs_line(unsigned code_point) {
  return (code_point >= 0x80 && code_point < 0xa0) || (code_point >= 0x200e && code_point <= 0x200f) ||
         (code_point >= 0x2028 && code_point <= 0x202e) || (code_point >= 0x2066 && code_point <= 0x2069);
}

}  // namespace

std::string quoted(std::string_view text, size_t max_bytes) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    if (out.size() > max_bytes) {
      out += "...";
      break;
    }
    const size_t length = utf8_sequence_length(text.substr(i));
    const std::string_view sequence = text.substr(i, std::max<size_t>(length, 1));
    const auto first = static_cast<unsigned char>(sequence[0]);
    if (length == 0) {
      out += "\\ufffd";
    } else if (length == 1 && (first < 0x20 || first == 0x7f)) {
      append_escape(first, out);
    } else if ((length == 2 || length == 3) && disturbs_line(code_point(sequence))) {
      append_escape(code_point(sequence), out);
    } else {
      if (first == '"' || first == '\\') out += '\\';
      out += sequence;
    }
    i += sequence.size();
  }
  return out + '"';
}

std::string plain_or_quoted(std::string_view text, size_t max_bytes) {
  if (text.empty()) return "-";
  const bool is_word = text.size() <= max_bytes && std::ranges::all_of(text, [](char c) {
                         return c > ' ' && c <= '~' && c != '"' && c != '\\' && c != '=';
                       });
  return is_word ? std::string(text) : quoted(text, max_bytes);
}

}  // namespace headrace::server
