#pragma once

#include <string_view>

#include "base/error.h"

namespace headrace::cluster {

/// The same error, told of `where`: "worker 10.0.0.2:8100: no sign of life".
[[nodiscard]] inline Error named_error(std::string_view where, const Error& error) {
  return Error(error.code(), cat(where, ": ", error.message()));
}

/// For code that throws: the value, or the error thrown.
template <class Value>
[[nodiscard]] Value value_or_throw(Result<Value> result) {
  if (!result) throw result.error();
  return std::move(result).value();
}
/// The same, the error told of `where`.
template <class Value>
[[nodiscard]] Value value_or_throw(Result<Value> result, std::string_view where) {
  if (!result) throw named_error(where, result.error());
  return std::move(result).value();
}

}  // namespace headrace::cluster
