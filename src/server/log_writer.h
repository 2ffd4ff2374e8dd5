#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace headrace::server {

/// Writes lines to a file descriptor from a thread of its own. At most 4 MiB wait; what comes then is dropped.
/// Threading: add() from any thread.
class LogWriter {
 public:
  /// `fd` stays the caller's.
  explicit LogWriter(int fd);
  /// Writes what waits, for at most 1 s.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// `line` without its end.
  void add(std::string line);
  /// Lines dropped since the last call.
  [[nodiscard]] int64_t take_dropped();

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  /// False: the reader took nothing until it was time to stop.
  [[nodiscard]] bool write_all(const std::string& text);
  [[nodiscard]] bool past_the_end();

  const int fd_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string waiting_;
  int64_t dropped_ = 0;
  bool stop_ = false;
  Clock::time_point give_up_at_{};
  std::thread thread_;  // last: begins when all else is there
};

}  // namespace headrace::server
