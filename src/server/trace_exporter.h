#pragma once

#include <memory>
#include <string>

namespace headrace::server {

/// Sends a span for each request as OTLP over HTTP, JSON, from a thread of its own; spans that the collector does not
/// take in time are dropped. Threading: every function from any thread.
class TraceExporter {
 public:
  /// `endpoint`: "http://HOST:PORT/v1/traces". Throws Error for what is no such address.
  explicit TraceExporter(const std::string& endpoint);
  /// Sends what it has, for at most 2 s.
  ~TraceExporter();
  TraceExporter(const TraceExporter&) = delete;
  TraceExporter& operator=(const TraceExporter&) = delete;

 private:
  friend class RequestWatch;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::server
