#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headrace::server {

/// How a request ended, as metrics and the log tell it.
enum class Outcome : uint8_t {
  kStop,
  kLength,
  kToolCalls,
  kAborted,   ///< the client went, or read too slowly
  kError,     ///< the engine failed
  kTimeout,   ///< a deadline passed
  kRejected,  ///< not taken: bad request, no room in the queue
};
constexpr size_t kNumOutcomes = 7;
constexpr int kClientGone = 499;  ///< status of logs for an aborted request; nobody is sent it

/// "stop", "length", "tool_calls", "aborted", "error", "timeout", "rejected"
[[nodiscard]] std::string_view outcome_name(Outcome outcome) noexcept;

/// Why a request was not taken.
enum class Rejection : uint8_t {
  kInvalid,      ///< the request is at fault
  kQueueFull,    ///< too many wait
  kQuota,        ///< the caller's limits
  kUnavailable,  ///< loading, draining, failed
};
constexpr size_t kNumRejections = 4;

/// "invalid", "queue_full", "quota", "unavailable"
[[nodiscard]] std::string_view rejection_name(Rejection rejection) noexcept;
/// Of an answer with this status, of a request that had passed the caller's limits.
[[nodiscard]] Rejection rejection_of(int status) noexcept;

}  // namespace headrace::server
