#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace headrace {

/// Writes a timeline in the Trace Event Format ("JSON Array Format"), which ui.perfetto.dev and chrome://tracing show:
/// named tracks with spans, and counters. Times are seconds; they are written as whole nanoseconds.
/// Threading: one thread.
class TraceWriter {
 public:
  /// Throws Error where the file cannot be written.
  explicit TraceWriter(std::string path);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  enum class Track : int32_t {};
  /// A new track; tracks are shown in the order in which they were made.
  [[nodiscard]] Track add_track(std::string_view name);
  /// A span on a track; spans of one track may touch or nest, not cross. `arguments`: the inside of a JSON object,
  /// such as "\"rows\":3", or empty.
  void add_span(Track track, std::string_view name, double begin_s, double end_s, std::string_view arguments = {});
  /// The value of a counter from `at_s` on.
  void add_counter(std::string_view name, double at_s, double value);
  /// Hands all events so far to the system: they are in the file even if this process is killed. Whether that worked.
  [[nodiscard]] bool flush();
  /// Of the file so far.
  [[nodiscard]] int64_t bytes() const noexcept { return bytes_; }
  /// Ends the file. Throws Error where something could not be written.
  void close();

 private:
  void add_event(std::string_view event);

  std::string path_;
  std::ofstream out_;
  int64_t bytes_ = 0;
  int32_t num_tracks_ = 0;
  bool first_ = true;
};

}  // namespace headrace
