#pragma once

#include <string>
#include <utility>

#include "headrace/error.h"

namespace headrace::openai {

/// A request that cannot be served as it is: what goes into the `error` object of the answer.
class RequestError : public Error {
 public:
  RequestError(std::string code, std::string param, std::string message)
      : Error(ErrorCode::kInvalidArgument, std::move(message)), code_(std::move(code)), param_(std::move(param)) {}
  /// "invalid_value", "unsupported_parameter", "invalid_json", "context_length_exceeded", ...
  [[nodiscard]] const std::string& openai_code() const noexcept { return code_; }
  /// The field at fault, "messages[2].content"; empty where it is none.
  [[nodiscard]] const std::string& param() const noexcept { return param_; }

 private:
  std::string code_;
  std::string param_;
};

}  // namespace headrace::openai
