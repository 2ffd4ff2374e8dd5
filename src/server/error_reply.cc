#include "server/error_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "openai/answer_json.h"

namespace headrace::server {
namespace {

constexpr std::string_view kInvalidRequest = "invalid_request_error";
constexpr std::string_view kServerError = "server_error";

HttpReply reply_of(const StatusError& error) {
  const StatusError::Fields& fields = error.fields();
  openai::Json body;
  body["error"] = {{"message", error.message()},
                   {"type", fields.type},
                   {"param", fields.param.empty() ? openai::Json() : openai::Json(fields.param)},
                   {"code", fields.code}};
  HttpReply reply{.status = fields.status, .body = openai::to_text(body), .headers = fields.headers};
  if (fields.retry_after_seconds) {
    const double seconds = std::clamp(std::ceil(*fields.retry_after_seconds), 1.0, 3600.0);
    reply.headers.push_back({"Retry-After", fmt::format("{:.0f}", seconds)});
  }
  return reply;
}

HttpReply reply_of(const Error& error) {
  const openai::ErrorAnswer answer = openai::error_answer(error);
  HttpReply reply{.status = answer.status, .body = openai::to_text(answer.body)};
  if (answer.status == 500) reply.headers.push_back({"x-should-retry", "false"});
  return reply;
}

}  // namespace

HttpReply error_reply(const std::exception& error) {
  if (const auto* status = dynamic_cast<const StatusError*>(&error)) return reply_of(*status);
  if (const auto* known = dynamic_cast<const Error*>(&error)) return reply_of(*known);
  return reply_of(Error(ErrorCode::kInternal, error.what()));
}

StatusError not_found(std::string message) {
  return StatusError({.status = 404, .type = "not_found_error", .code = "not_found"}, std::move(message));
}

StatusError method_not_allowed(std::string_view allowed) {
  return StatusError({.status = 405,
                      .type = kInvalidRequest,
                      .code = "method_not_allowed",
                      .headers = {{"Allow", std::string(allowed)}}},
                     fmt::format("this path takes {}", allowed));
}

StatusError unauthorized(std::string_view challenge) {
  return StatusError({.status = 401,
                      .type = "authentication_error",
                      .code = "invalid_api_key",
                      .headers = {{"WWW-Authenticate", std::string(challenge)}}},
                     "no key, or one that this server does not know: send 'Authorization: Bearer KEY'");
}

StatusError queue_full(double retry_after_seconds, std::string message) {
  return StatusError(
      {.status = 429, .type = "rate_limit_error", .code = "queue_full", .retry_after_seconds = retry_after_seconds},
      std::move(message));
}

StatusError timed_out(std::string message) {
  return StatusError({.status = 504, .type = kServerError, .code = "timeout"}, std::move(message));
}

StatusError unavailable(std::string_view code, double retry_after_seconds, std::string message) {
  return StatusError({.status = 503, .type = kServerError, .code = code, .retry_after_seconds = retry_after_seconds},
                     std::move(message));
}

}  // namespace headrace::server
