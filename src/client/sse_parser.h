#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace headrace::client {

/// Reads server-sent events (WHATWG HTML, section 9.2) from bytes that come in pieces of any size: comments, data of
/// several lines, lines that end in LF, CR or CRLF. Tolerant where the standard would drop something: an event without
/// the empty line after it is given out at the end of the stream.
class SseParser {
 public:
  /// `type` is empty where the event names none. Both views end with the call.
  using OnEvent = std::function<void(std::string_view type, std::string_view data)>;

  explicit SseParser(OnEvent on_event) : on_event_(std::move(on_event)) {}

  /// False: an event or a line is larger than kMaxEventBytes; nothing more is read.
  [[nodiscard]] bool feed(std::string_view bytes);
  /// The stream has ended.
  void finish();

  static constexpr size_t kMaxEventBytes = 16 << 20;

 private:
  void take_line(std::string_view line);
  void dispatch();

  OnEvent on_event_;
  std::string line_;  ///< the beginning of a line whose end is still to come
  std::string type_, data_;
  bool has_data_ = false;
  bool first_line_ = true;
  bool after_cr_ = false;  ///< a line feed that comes next belongs to the carriage return before
};

}  // namespace headrace::client
