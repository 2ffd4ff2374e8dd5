#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headrace/error.h"
#include "server/http_message.h"

namespace headrace::server {

/// A refusal by the server itself: what goes into the status line and the `error` object.
class StatusError : public Error {
 public:
  struct Fields {
    int status = 500;
    std::string_view type;  ///< "invalid_request_error", "rate_limit_error", ...
    std::string_view code;  ///< "queue_full", ...
    std::string param = {};
    std::optional<double> retry_after_seconds = {};  ///< the Retry-After header, rounded up
    std::vector<Header> headers = {};
  };
  StatusError(Fields fields, std::string message)
      : Error(ErrorCode::kUnavailable, std::move(message)), fields_(std::move(fields)) {}
  [[nodiscard]] const Fields& fields() const noexcept { return fields_; }

 private:
  Fields fields_;
};

/// The answer to any error: StatusError, those of the API (openai::error_answer), and others, which are 500. What would
/// fail again in the same way says `x-should-retry: false`, since clients repeat every 5xx else.
[[nodiscard]] HttpReply error_reply(const std::exception& error);

/// The refusals that more than one place gives.
[[nodiscard]] StatusError not_found(std::string message);
[[nodiscard]] StatusError method_not_allowed(std::string_view allowed);
[[nodiscard]] StatusError unauthorized(std::string_view challenge);  ///< the WWW-Authenticate header
[[nodiscard]] StatusError queue_full(double retry_after_seconds, std::string message);
[[nodiscard]] StatusError timed_out(std::string message);
[[nodiscard]] StatusError unavailable(std::string_view code, double retry_after_seconds, std::string message);

}  // namespace headrace::server
