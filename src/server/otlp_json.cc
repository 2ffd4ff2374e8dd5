#include "server/otlp_json.h"

#include <fmt/format.h>

#include <string_view>

#include "server/line_text.h"

namespace headrace::server {
namespace {

constexpr int kServer = 2, kInternal = 1;  // SpanKind
constexpr int kError = 2;                  // StatusCode

/// "key":...,"value":... pairs, joined by commas. 64-bit numbers are strings in this form of JSON.
class Attributes {
 public:
  Attributes& text(std::string_view key, std::string_view value) {
    if (value.empty()) return *this;
    return add(key, fmt::format(R"("stringValue":{})", quoted(value)));
  }
  Attributes& number(std::string_view key, int64_t value) { return add(key, fmt::format(R"("intValue":"{}")", value)); }
  Attributes& seconds(std::string_view key, double value) {
    return add(key, fmt::format(R"("doubleValue":{:.6f})", value));
  }
  Attributes& list_of_one(std::string_view key, std::string_view value) {
    return add(key, fmt::format(R"("arrayValue":{{"values":[{{"stringValue":{}}}]}})", quoted(value)));
  }
  [[nodiscard]] const std::string& json() const { return json_; }

 private:
  Attributes& add(std::string_view key, const std::string& value) {
    if (!json_.empty()) json_ += ',';
    json_ += fmt::format(R"({{"key":"{}","value":{{{}}}}})", key, value);
    return *this;
  }
  std::string json_;
};

int64_t unix_nanoseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

struct SpanHead {
  std::string_view trace_id, span_id, parent_id, trace_state;
  std::string_view name;
  int kind = kInternal;
  std::chrono::system_clock::time_point begin, end;
};

/// Without the closing brace.
std::string open_span(const SpanHead& head) {
  std::string json = fmt::format(
      R"({{"traceId":"{}","spanId":"{}","name":{},"kind":{},"startTimeUnixNano":"{}","endTimeUnixNano":"{}")",
      head.trace_id, head.span_id, quoted(head.name), head.kind, unix_nanoseconds(head.begin),
      unix_nanoseconds(head.end));
  if (!head.parent_id.empty()) json += fmt::format(R"(,"parentSpanId":"{}")", head.parent_id);
  if (!head.trace_state.empty()) json += fmt::format(R"(,"traceState":{})", quoted(head.trace_state, 1024));
  return json;
}

std::string_view operation_of(std::string_view endpoint) {
  if (endpoint.find("chat") != std::string_view::npos || endpoint.find("messages") != std::string_view::npos ||
      endpoint.find("responses") != std::string_view::npos) {
    return "chat";
  }
  return "text_completion";
}

std::string attributes_of(const RequestSpan& span) {
  Attributes all;
  all.text("gen_ai.operation.name", operation_of(span.endpoint)).text("gen_ai.provider.name", "headrace");
  all.text("gen_ai.request.model", span.model).number("gen_ai.request.choice.count", span.choices);
  if (span.max_tokens > 0) all.number("gen_ai.request.max_tokens", span.max_tokens);
  all.list_of_one("gen_ai.response.finish_reasons", span.outcome);
  all.number("gen_ai.usage.input_tokens", span.prompt_tokens);
  all.number("gen_ai.usage.output_tokens", span.completion_tokens);
  all.number("gen_ai.usage.cache_read.input_tokens", span.cached_tokens);
  if (span.first_token_seconds > 0) all.seconds("gen_ai.server.time_to_first_token", span.first_token_seconds);
  all.text("http.request.method", "POST").text("http.route", span.endpoint);
  all.number("http.response.status_code", span.status).text("headrace.request_id", span.request_id);
  if (span.failed) all.text("error.type", span.outcome);
  return all.json();
}

void append_span(const RequestSpan& span, std::string& out) {
  const std::string id = random_span_id();
  const std::string name = fmt::format("{} {}", operation_of(span.endpoint), span.model);
  if (!out.empty()) out += ',';
  out += open_span({.trace_id = span.context.trace_id,
                    .span_id = id,
                    .parent_id = span.context.parent_span_id,
                    .trace_state = span.context.state,
                    .name = name,
                    .kind = kServer,
                    .begin = span.begin,
                    .end = span.end});
  out += fmt::format(R"(,"attributes":[{}])", attributes_of(span));
  if (span.failed) out += fmt::format(R"(,"status":{{"code":{}}})", kError);
  out += '}';
  for (const TracePart& part : span.parts) {
    const std::string part_id = random_span_id();
    out += ',';
    out += open_span({.trace_id = span.context.trace_id,
                      .span_id = part_id,
                      .parent_id = id,
                      .trace_state = span.context.state,
                      .name = part.name,
                      .begin = part.begin,
                      .end = part.end});
    out += '}';
  }
}

}  // namespace

std::string otlp_json(std::span<const RequestSpan> spans) {
  std::string list;
  for (const RequestSpan& span : spans) append_span(span, list);
  return fmt::format(
      R"({{"resourceSpans":[{{"resource":{{"attributes":[{}]}},"scopeSpans":[{{"scope":{{"name":"headrace"}},"spans":[{}]}}]}}]}})",
      Attributes().text("service.name", "headrace").json(), list);
}

}  // namespace headrace::server
