#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "headrace/error.h"

namespace headrace::rpc {

/// The server does not know the caller's key, or the key may not do this.
class PermissionError : public Error {
 public:
  explicit PermissionError(std::string message) : Error(ErrorCode::kInvalidArgument, std::move(message)) {}
};

/// How a call failed, as gRPC tells it.
struct CallStatus {
  int code = 0;             ///< of grpc::StatusCode, not OK
  std::string message;      ///< for a person
  std::string object = {};  ///< JSON of the trailing metadata `headrace-error-bin`; may be empty, and is not trusted
};

/// What the same failure throws where the model is in the process: ContextLengthError, ParameterError, PermissionError
/// or Error. `address`: of the server, for failures to reach it.
[[nodiscard]] std::exception_ptr call_error(const CallStatus& status, std::string_view address);

}  // namespace headrace::rpc
