#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::client {

using Time = std::chrono::steady_clock::time_point;

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  ///< "Name: value"
  std::string body;                  ///< empty: GET, else POST
  double timeout_seconds = 3600;
};

struct HttpEnd {
  int64_t status = 0;  ///< 0: no answer came
  std::string error;   ///< empty: the answer came whole
  bool cancelled = false;
  Time at;
};

/// Gets the answer to one request, on the thread that calls HttpClient::turn.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  /// Part of the body, which arrived at `at`.
  virtual void on_bytes(int64_t status, std::string_view bytes, Time at) = 0;
  /// Once, last.
  virtual void on_end(const HttpEnd& end) = 0;
};

struct HttpAnswer {
  int64_t status = 0;
  std::string body;
  std::string error;  ///< as in HttpEnd
};

/// Many HTTP exchanges at once on one thread (libcurl's multi interface, driven by epoll, so that an event costs the
/// same however many connections there are). Connections are kept and used again.
/// Threading: one thread; handlers may start and cancel exchanges, but not call turn.
class HttpClient {
 public:
  struct Options {
    double connect_timeout_seconds = 10;
    bool verify_peer = true;  ///< of https
  };
  HttpClient() : HttpClient(Options{}) {}
  explicit HttpClient(Options options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Sends at once where a connection is free, else connects first. `handler` must live until its on_end. Throws Error
  /// for a URL that cannot be one.
  void start(const HttpRequest& request, HttpHandler& handler);
  /// Ends the exchange of `handler` with on_end(cancelled), and closes its connection.
  void cancel(HttpHandler& handler);
  /// Waits until something happens, or until `deadline`, and handles all that has happened. Rethrows what a handler
  /// threw. Returns early at a signal. Gives the seconds that the handling took: so much later than it arrived can
  /// a byte have been read.
  double turn(Time deadline);
  [[nodiscard]] size_t num_running() const noexcept;

  /// One request, answered while the caller waits.
  [[nodiscard]] HttpAnswer fetch(const HttpRequest& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::client
