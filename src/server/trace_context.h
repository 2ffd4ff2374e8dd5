#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::server {

/// Where a request stands in a trace (https://www.w3.org/TR/trace-context/): 16 and 8 bytes as lower-case hex.
struct TraceContext {
  std::string trace_id;
  std::string parent_span_id = {};  ///< empty: the trace begins here
  std::string state = {};           ///< the header tracestate
  bool is_sampled = true;           ///< false: the caller does not record this trace, and so neither do we
};

/// What the header traceparent says; nullopt where it is not well-formed.
[[nodiscard]] std::optional<TraceContext> parse_traceparent(std::string_view header);
/// The trace that the headers continue, or a new one.
[[nodiscard]] TraceContext continue_trace(std::string_view traceparent, std::string_view tracestate);
/// A new id that is not zero.
[[nodiscard]] std::string random_span_id();

}  // namespace headrace::server
