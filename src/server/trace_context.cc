#include "server/trace_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace headrace::server {
namespace {

constexpr size_t kMaxState = 512;

uint64_t random_word() {
  thread_local std::random_device source;
  return uint64_t{source()} << 32 | source();
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool is_zero(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c == '0'; });
}

}  // namespace

std::string random_span_id() { return fmt::format("{:016x}", std::max<uint64_t>(random_word(), 1)); }

std::optional<TraceContext> parse_traceparent(std::string_view header) {
  // version 2 digits, '-', trace 32, '-', parent 16, '-', flags 2; later versions may append "-...".
  constexpr size_t kLength = 55;
  if (header.size() < kLength || header[2] != '-' || header[35] != '-' || header[52] != '-') return std::nullopt;
  const std::string_view version = header.substr(0, 2);
  const std::string_view trace = header.substr(3, 32);
  const std::string_view parent = header.substr(36, 16);
  const std::string_view flags = header.substr(53, 2);
  if (!is_hex(version) || !is_hex(trace) || !is_hex(parent) || !is_hex(flags)) return std::nullopt;
  if (version == "ff" || is_zero(trace) || is_zero(parent)) return std::nullopt;
  if (header.size() > kLength && (version == "00" || header[kLength] != '-')) return std::nullopt;
  const char low = flags[1];
  const int digit = low <= '9' ? low - '0' : low - 'a' + 10;
  return TraceContext{
      .trace_id = std::string(trace), .parent_span_id = std::string(parent), .is_sampled = (digit & 1) != 0};
}

TraceContext continue_trace(std::string_view traceparent, std::string_view tracestate) {
  if (std::optional<TraceContext> context = parse_traceparent(traceparent)) {
    if (tracestate.size() <= kMaxState) context->state = tracestate;
    return *std::move(context);
  }
  return {.trace_id = random_span_id() + random_span_id()};
}

}  // namespace headrace::server
