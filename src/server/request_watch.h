#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/generation.h"
#include "server/exchange.h"
#include "server/outcome.h"

namespace headrace::server {

class Metrics;
class RequestLog;
class TraceExporter;

/// What a generation asks for, as far as metrics tell it.
struct RequestShape {
  std::string endpoint;  ///< "/v1/chat/completions"
  int32_t choices = 1;   ///< n
  int32_t max_tokens = 0;
  bool stream = false;
  std::string model = {};  ///< as the request names it
};

/// Watches one body's generation from its arrival to its end, for metrics, log and traces. One thread at a time.
/// Destroyed without end(): it counts as an error.
class RequestWatch {
 public:
  RequestWatch(Metrics& metrics, RequestLog& log, TraceExporter* traces, const Exchange& exchange, RequestShape shape);
  ~RequestWatch();
  RequestWatch(const RequestWatch&) = delete;
  RequestWatch& operator=(const RequestWatch&) = delete;

  /// An event of one of the body's requests (a text completion may have several prompts).
  void event(size_t request, const GenerationEvent& event);
  /// All has ended, and was answered with this HTTP status. Only the first call counts.
  void end(Outcome outcome, int status);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::server
