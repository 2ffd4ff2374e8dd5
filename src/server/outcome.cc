#include "server/outcome.h"

namespace headrace::server {

std::string_view outcome_name(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kStop:
      return "stop";
    case Outcome::kLength:
      return "length";
    case Outcome::kToolCalls:
      return "tool_calls";
    case Outcome::kAborted:
      return "aborted";
    case Outcome::kError:
      return "error";
    case Outcome::kTimeout:
      return "timeout";
    case Outcome::kRejected:
      return "rejected";
  }
  return "?";
}

std::string_view rejection_name(Rejection rejection) noexcept {
  switch (rejection) {
    case Rejection::kInvalid:
      return "invalid";
    case Rejection::kQueueFull:
      return "queue_full";
    case Rejection::kQuota:
      return "quota";
    case Rejection::kUnavailable:
      return "unavailable";
  }
  return "?";
}

Rejection rejection_of(int status) noexcept {
  if (status == 429) return Rejection::kQueueFull;
  return status >= 500 ? Rejection::kUnavailable : Rejection::kInvalid;
}

}  // namespace headrace::server
