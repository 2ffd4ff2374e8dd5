#pragma once

#include <span>
#include <string>

#include "server/trace_exporter.h"

namespace headrace::server {

/// The body of an OTLP/HTTP request (ExportTraceServiceRequest, JSON form of opentelemetry-proto 1.x): each request's
/// span, and a child for each of its parts.
[[nodiscard]] std::string otlp_json(std::span<const RequestSpan> spans);

}  // namespace headrace::server
