#include "client/sse_parser.h"

namespace headrace::client {

bool SseParser::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() + data_.size() > kMaxEventBytes) return false;
    if (end == std::string_view::npos) {
      line_ += part;
      return true;
    }
    after_cr_ = bytes[end] == '\r';
    if (line_.empty()) {
      take_line(part);
    } else {
      line_ += part;
      take_line(line_);
      line_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  return true;
}

void SseParser::finish() {
  if (!line_.empty()) take_line(line_);
  line_.clear();
  dispatch();
}

void SseParser::take_line(std::string_view line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (first_line_ && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  first_line_ = false;
  if (line.empty()) return dispatch();
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) data_ += '\n';
    has_data_ = true;
    data_ += value;
  } else if (field == "event") {
    type_ = value;
  }
}

void SseParser::dispatch() {
  if (has_data_) on_event_(type_, data_);
  has_data_ = false;
  data_.clear();
  type_.clear();
}

}  // namespace headrace::client
