#include "text/replace_invalid.h"

#include "base/utf8.h"

namespace headrace {
namespace {

/// Bytes of the longest prefix of `bytes` that begins some character; at least 1.
size_t maximal_subpart(std::string_view bytes) noexcept {
  for (size_t n = 3; n > 1; --n) {
    if (bytes.size() >= n && utf8_incomplete_tail(bytes.substr(0, n)) == n) return n;
  }
  return 1;
}

}  // namespace

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = utf8_sequence_length(bytes);
    if (length > 0) {
      out += bytes.substr(0, length);
      bytes.remove_prefix(length);
    } else {
      out += "\xEF\xBF\xBD";
      bytes.remove_prefix(maximal_subpart(bytes));
    }
  }
  return out;
}

}  // namespace headrace
