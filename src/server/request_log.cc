#include "server/request_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <utility>

#include "server/line_text.h"
#include "server/log_writer.h"

namespace headrace::server {
namespace {

std::string time_stamp() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
  const auto seconds = static_cast<std::time_t>(ms / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", utc, ms % 1000);
}

/// A line in either format, field by field.
class Line {
 public:
  Line(RequestLog::Format format, std::string_view event) : is_json_(format == RequestLog::Format::kJson) {
    text_ = is_json_ ? fmt::format(R"({{"time":"{}","event":"{}")", time_stamp(), event)
                     : fmt::format("{} {}", time_stamp(), event);
  }
  Line& text(std::string_view name, std::string_view value) {
    return raw(name, is_json_ ? quoted(value) : plain_or_quoted(value));
  }
  Line& number(std::string_view name, int64_t value) { return raw(name, fmt::format("{}", value)); }
  Line& seconds(std::string_view name, double value) { return raw(name, fmt::format("{:.6f}", value)); }
  Line& flag(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
  [[nodiscard]] std::string end() && {
    if (is_json_) text_ += '}';
    return std::move(text_);
  }

 private:
  Line& raw(std::string_view name, std::string_view value) {
    text_ += is_json_ ? fmt::format(R"(,"{}":{})", name, value) : fmt::format(" {}={}", name, value);
    return *this;
  }
  bool is_json_;
  std::string text_;
};

}  // namespace

class RequestLog::Writer {
 public:
  Writer(Format format, int fd) : format_(format), lines_(fd) {}
  void add(std::string line) {
    if (const int64_t dropped = lines_.take_dropped(); dropped > 0) {
      lines_.add(std::move(Line(format_, "dropped").number("lines", dropped)).end());
    }
    lines_.add(std::move(line));
  }

 private:
  Format format_;
  LogWriter lines_;
};

RequestLog::RequestLog(Format format, bool log_requests, int fd)
    : format_(format), log_requests_(log_requests), writer_(std::make_unique<Writer>(format, fd)) {}

RequestLog::~RequestLog() = default;

void RequestLog::note(std::string_view text) {
  writer_->add(std::move(Line(format_, "note").text("text", text)).end());
}

void RequestLog::plain_request(std::string_view request_id, std::string_view caller, std::string_view method,
                               std::string_view path, int status, double seconds) {
  if (!log_requests_) return;
  Line line(format_, "request");
  line.text("id", request_id).text("caller", caller).text("method", method).text("path", path);
  line.number("status", status).seconds("total_s", seconds);
  writer_->add(std::move(line).end());
}

void RequestLog::generation(const RequestLine& request) {
  if (!log_requests_) return;
  Line line(format_, "generation");
  line.text("id", request.request_id).text("caller", request.caller).text("endpoint", request.endpoint);
  line.number("status", request.status).text("outcome", request.outcome).flag("stream", request.stream);
  line.number("prompt_tokens", request.prompt_tokens).number("cached_tokens", request.cached_tokens);
  line.number("completion_tokens", request.completion_tokens);
  line.seconds("queue_s", request.queue_seconds).seconds("ttft_s", request.first_token_seconds);
  line.seconds("total_s", request.total_seconds);
  writer_->add(std::move(line).end());
}

}  // namespace headrace::server
