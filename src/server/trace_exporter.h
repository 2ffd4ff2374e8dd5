#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/trace_context.h"

namespace headrace::server {

/// A part of a request's time.
struct TracePart {
  std::string name;  ///< "queue", "prefill", "decode"
  std::chrono::system_clock::time_point begin, end;
};

/// A generation as a span, with the attributes of OpenTelemetry's conventions for generative models.
struct RequestSpan {
  TraceContext context;
  std::chrono::system_clock::time_point begin, end;
  std::string request_id = {};
  std::string endpoint = {};  ///< "/v1/chat/completions"
  std::string model = {};
  std::string outcome = {};  ///< "stop", ...
  int status = 200;
  bool failed = false;
  int32_t choices = 1;
  int32_t max_tokens = 0;  ///< 0: not set
  int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  double first_token_seconds = 0;  ///< 0: there was none
  std::vector<TracePart> parts = {};
};

/// Sends a span for each request as OTLP over HTTP, JSON, from a thread of its own; spans that the collector does not
/// take in time are dropped, with one warning until it takes some again. Threading: every function from any thread.
class TraceExporter {
 public:
  /// `endpoint`: "http://HOST:PORT/v1/traces". Throws Error for what is no such address.
  explicit TraceExporter(const std::string& endpoint);
  /// Sends what it has, for at most 2 s.
  ~TraceExporter();
  TraceExporter(const TraceExporter&) = delete;
  TraceExporter& operator=(const TraceExporter&) = delete;

  void add(RequestSpan span);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::server
