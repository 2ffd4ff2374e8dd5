#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"
#include "headrace/error.h"

namespace headrace {

/// An error about a file: "<path>: <what>". Control characters in both are escaped, so that the text stays one line.
class LoadError : public Error {
 public:
  LoadError(std::string_view path, std::string_view what, ErrorCode code = ErrorCode::kCorrupt);
};

/// `text` with control characters and invalid UTF-8 escaped as \xNN and cut after `max_bytes` with "...": names from
/// hostile files are shown through this.
[[nodiscard]] std::string printable(std::string_view text, size_t max_bytes = 120);

/// A value or an Error (our compiler has no std::expected).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::move(error)) {}  // NOLINT
  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] T& value() & { return HR_CHECK(ok(), "value() of an error"), *std::get_if<0>(&state_); }
  [[nodiscard]] const T& value() const& { return HR_CHECK(ok(), "value() of an error"), *std::get_if<0>(&state_); }
  [[nodiscard]] T&& value() && { return HR_CHECK(ok(), "value() of an error"), std::move(*std::get_if<0>(&state_)); }
  [[nodiscard]] const Error& error() const { return HR_CHECK(!ok(), "error() of a value"), *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace headrace
