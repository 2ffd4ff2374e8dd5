#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::server {

/// A line for each request, and what happens to the server, on standard error: text, or one JSON object a line.
/// Threading: every function from any thread.
class RequestLog {
 public:
  enum class Format { kText, kJson };
  RequestLog(Format format, bool log_requests) : format_(format), log_requests_(log_requests) {}

  /// Something about the server: "ready after 2.1 s".
  void note(std::string_view text);
  /// The end of a request that generates nothing: method, path, status, seconds.
  void plain_request(std::string_view request_id, std::string_view caller, std::string_view method,
                     std::string_view path, int status, double seconds);

 private:
  friend class RequestWatch;
  Format format_;
  bool log_requests_;
};

}  // namespace headrace::server
