#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace headrace::server {

/// What the log tells about a request that generates.
struct RequestLine {
  std::string_view request_id;
  std::string_view caller;
  std::string_view endpoint;
  int status = 200;
  std::string_view outcome;  ///< "stop", "length", "aborted", ...
  bool stream = false;
  int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  double queue_seconds = 0;
  double first_token_seconds = 0;  ///< 0: there was none
  double total_seconds = 0;        ///< from the arrival of the request to the end of its answer
};

/// A line for each request, and what happens to the server: text (name=value), or one JSON object a line. What clients
/// send is escaped, so that it forges no lines. A thread of its own writes; when the reader stands still, lines are
/// dropped and their number told later. Threading: every function from any thread; none waits for the reader.
class RequestLog {
 public:
  enum class Format { kText, kJson };
  /// `log_requests` false: only note() writes. `fd`: standard error; stays the caller's.
  RequestLog(Format format, bool log_requests, int fd = 2);
  /// Writes what there is, for at most 1 s.
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  /// Something about the server: "ready after 2.1 s".
  void note(std::string_view text);
  /// The end of a request that generates nothing: method, path, status, seconds.
  void plain_request(std::string_view request_id, std::string_view caller, std::string_view method,
                     std::string_view path, int status, double seconds);
  /// The end of a request that generates.
  void generation(const RequestLine& line);

 private:
  class Writer;
  Format format_;
  bool log_requests_;
  std::unique_ptr<Writer> writer_;
};

}  // namespace headrace::server
