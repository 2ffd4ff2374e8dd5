#include "base/error.h"

#include <cstdio>
#include <cstdlib>

#include "base/utf8.h"

namespace headrace {

std::string_view error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kOutOfMemory:
      return "out_of_memory";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

LoadError::LoadError(std::string_view path, std::string_view what, ErrorCode code)
    : Error(code, cat(printable(path, 4096), ": ", printable(what, 1024))) {}

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= max_bytes) return out + "...";
    const size_t n = utf8_sequence_length(text.substr(i));
    const auto c = static_cast<unsigned char>(text[i]);
    const bool is_c1_control = n == 2 && c == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (n == 0 || c < 0x20 || c == 0x7f || is_c1_control) {
      out += cat("\\x", "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]);
      i += 1;
    } else {
      out += text.substr(i, n);
      i += n;
    }
  }
  return out;
}

void check_failed(const char* file, int line, const char* condition, const std::string& detail) noexcept {
  std::fprintf(stderr, "headrace: bug at %s:%d: %s does not hold. %s\n", file, line, condition, detail.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace headrace
