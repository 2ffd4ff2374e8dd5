#include "rpc/call_error.h"

#include <grpcpp/support/status.h>

#include <nlohmann/json.hpp>

#include "base/cat.h"
#include "headrace/generation.h"

namespace headrace::rpc {
namespace {

using Json = nlohmann::json;

std::string text_field(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t number_field(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

ErrorCode code_of(int status) {
  switch (status) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE:
      return ErrorCode::kInvalidArgument;
    case grpc::StatusCode::NOT_FOUND:
      return ErrorCode::kNotFound;
    case grpc::StatusCode::UNIMPLEMENTED:
      return ErrorCode::kUnsupported;
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
      return ErrorCode::kUnavailable;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ErrorCode::kTimeout;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

std::exception_ptr call_error(const CallStatus& status, std::string_view address) {
  if (status.code == grpc::StatusCode::UNAUTHENTICATED || status.code == grpc::StatusCode::PERMISSION_DENIED) {
    return std::make_exception_ptr(PermissionError(status.message));
  }
  const ErrorCode code = code_of(status.code);
  const Json object = Json::parse(status.object, nullptr, false);
  if (!object.is_object()) return std::make_exception_ptr(Error(code, cat(address, ": ", status.message)));
  if (text_field(object, "code") == "context_length_exceeded") {
    return std::make_exception_ptr(
        ContextLengthError(number_field(object, "n_prompt_tokens"), number_field(object, "n_ctx")));
  }
  const std::string parameter = text_field(object, "param");
  if (code == ErrorCode::kInvalidArgument && !parameter.empty()) {
    return std::make_exception_ptr(ParameterError(parameter, status.message));
  }
  return std::make_exception_ptr(Error(code, status.message));
}

}  // namespace headrace::rpc
