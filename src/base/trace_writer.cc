#include "base/trace_writer.h"

#include <fmt/format.h>

#include "base/cat.h"
#include "base/error.h"

namespace headrace {
namespace {

/// Quoted for JSON; control characters cannot be in our names and become blanks.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

double microseconds(double seconds) { return seconds * 1e6; }

}  // namespace

TraceWriter::TraceWriter(std::string path) : path_(std::move(path)), out_(path_, std::ios::binary | std::ios::trunc) {
  if (!out_) throw Error(ErrorCode::kInvalidArgument, cat(printable(path_), ": cannot be written"));
  out_ << "[";
  bytes_ = 1;
}

TraceWriter::~TraceWriter() {
  if (out_.is_open()) out_ << "\n]\n";
}

void TraceWriter::add_event(std::string_view event) {
  const std::string_view separator = first_ ? "\n" : ",\n";
  out_ << separator << event;
  bytes_ += std::ssize(separator) + std::ssize(event);
  first_ = false;
}

TraceWriter::Track TraceWriter::add_track(std::string_view name) {
  const int32_t track = ++num_tracks_;
  add_event(
      fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":{}}}}})", track, quoted(name)));
  add_event(
      fmt::format(R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})", track));
  return Track{track};
}

void TraceWriter::add_span(Track track, std::string_view name, double begin_s, double end_s,
                           std::string_view arguments) {
  add_event(fmt::format(R"({{"ph":"X","pid":1,"tid":{},"name":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
                        static_cast<int32_t>(track), quoted(name), microseconds(begin_s), microseconds(end_s - begin_s),
                        arguments));
}

void TraceWriter::add_counter(std::string_view name, double at_s, double value) {
  add_event(fmt::format(R"({{"ph":"C","pid":1,"name":{},"ts":{:.3f},"args":{{"value":{:g}}}}})", quoted(name),
                        microseconds(at_s), value));
}

bool TraceWriter::flush() { return static_cast<bool>(out_.flush()); }

void TraceWriter::close() {
  out_ << "\n]\n";
  out_.close();
  if (!out_) throw Error(ErrorCode::kUnavailable, cat(printable(path_), ": could not be written to the end"));
}

}  // namespace headrace
