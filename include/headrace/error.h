#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace headrace {

enum class ErrorCode {
  kInvalidArgument,  ///< the caller asked for something that cannot be (flag, request field)
  kNotFound,         ///< a file, model or name that does not exist
  kCorrupt,          ///< a file or frame that contradicts its format
  kUnsupported,      ///< well-formed, but not something this build can do
  kOutOfMemory,      ///< memory asked for is not to be had
  kUnavailable,      ///< a peer, device or service that does not answer
  kTimeout,          ///< a limit of time that was set has passed
  kInternal,         ///< a bug of ours
};
[[nodiscard]] std::string_view error_code_name(ErrorCode code) noexcept;  ///< "invalid_argument", "not_found", ...

/// What failed, for a person: one line that says where, what was found, what was expected. Thrown while loading and
/// building; inside the engine returned in a Result while running.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
};

/// A parameter of a request that is out of its range or that nobody can follow; the message says what is expected.
class ParameterError : public Error {
 public:
  ParameterError(std::string parameter, std::string message)
      : Error(ErrorCode::kInvalidArgument, std::move(message)), parameter_(std::move(parameter)) {}
  /// "temperature", "prompt", "structured_output"
  [[nodiscard]] const std::string& parameter() const noexcept { return parameter_; }

 private:
  std::string parameter_;
};

}  // namespace headrace
