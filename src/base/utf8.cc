#include "base/utf8.h"

#include <algorithm>

namespace headrace {
namespace {

/// What the lead byte promises: length of the sequence and range of the second byte. Length 0: not a lead byte.
struct Lead {
  size_t length;
  unsigned char second_min, second_max;
};

Lead lead_of(unsigned char c) noexcept {
  if (c < 0x80) return {1, 0, 0};
  if (c < 0xc2) return {0, 0, 0};
  if (c < 0xe0) return {2, 0x80, 0xbf};
  if (c == 0xe0) return {3, 0xa0, 0xbf};
  if (c == 0xed) return {3, 0x80, 0x9f};
  if (c < 0xf0) return {3, 0x80, 0xbf};
  if (c == 0xf0) return {4, 0x90, 0xbf};
  if (c < 0xf4) return {4, 0x80, 0xbf};
  if (c == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

/// How many bytes at the front of `text` fit the sequence that its lead byte promises.
size_t fitting_bytes(std::string_view text, const Lead& lead) noexcept {
  const size_t end = std::min(lead.length, text.size());
  for (size_t i = 1; i < end; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool ok = i == 1 ? c >= lead.second_min && c <= lead.second_max : (c & 0xc0) == 0x80;
    if (!ok) return i;
  }
  return end;
}

}  // namespace

size_t utf8_sequence_length(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  return lead.length > 0 && fitting_bytes(text, lead) == lead.length ? lead.length : 0;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const size_t n = utf8_sequence_length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

size_t utf8_incomplete_tail(std::string_view text) noexcept {
  for (size_t n = 1; n <= std::min<size_t>(3, text.size()); ++n) {
    const std::string_view tail = text.substr(text.size() - n);
    const Lead lead = lead_of(static_cast<unsigned char>(tail[0]));
    if (lead.length > n && fitting_bytes(tail, lead) == n) return n;
  }
  return 0;
}

}  // namespace headrace
