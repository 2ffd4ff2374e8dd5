#pragma once

#include <string>

namespace headrace::openai {

/// Finds the end of a JSON value that comes byte by byte. It follows strings and brackets only: what is between them
/// may still be wrong.
class JsonSpan {
 public:
  enum class Step : uint8_t {
    kGoesOn,
    kEnds,   ///< with this byte
    kPast,   ///< before this byte: a number or a word, which only what follows ends
    kWrong,  ///< no JSON
  };
  /// The next byte; the first one is no white space.
  [[nodiscard]] Step push(char c);

 private:
  std::string open_;  // brackets
  bool in_string_ = false;
  bool escaped_ = false;
  bool in_word_ = false;  // a number, true, false or null, outside of all brackets
};

[[nodiscard]] constexpr bool is_json_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace headrace::openai
