#include "server/server_context.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "base/build_id.h"
#include "server/error_reply.h"

namespace headrace::server {

ServerContext::ServerContext(const ServeOptions& serve_options, HttpSide http_side)
    : options(serve_options),
      http(std::move(http_side)),
      keys(options.api_key_file.empty() ? KeyRing() : KeyRing::load(options.api_key_file)),
      metrics(options.metrics_compat),
      log(options.log_format == "json" ? RequestLog::Format::kJson : RequestLog::Format::kText, options.log_requests),
      traces(options.otlp_traces_endpoint.empty() ? nullptr
                                                  : std::make_unique<TraceExporter>(options.otlp_traces_endpoint)),
      relay(http.post),
      readers(std::max(1, options.http.threads)) {}

std::vector<std::string> ServerContext::model_names() const {
  if (!options.served_model_names.empty()) return options.served_model_names;
  const Model* model = state.model();
  return model == nullptr ? std::vector<std::string>() : std::vector<std::string>{model->name()};
}

std::string ServerContext::model_name() const {
  if (!options.served_model_names.empty()) return options.served_model_names.front();
  const Model* model = state.model();
  return model == nullptr ? std::string() : model->name();
}

void ServerContext::check_model_name(std::string_view name) const {
  const std::vector<std::string> names = model_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw StatusError({.status = 404, .type = "not_found_error", .code = "model_not_found", .param = "model"},
                    fmt::format("model: found '{}', served is {}", name.substr(0, 200), fmt::join(names, ", ")));
}

void ServerContext::check_queue() const {
  const ModelFigures figures = model().figures();
  // Those whose bodies are being read may begin at once, where fewer run than may.
  const int64_t places = std::max<int64_t>(0, options.max_num_seqs - figures.running_sequences);
  const int64_t ahead = figures.queued_requests + readers.open_jobs();
  if (figures.queued_requests < options.max_queued_requests && ahead < options.max_queued_requests + places) return;
  throw queue_full(figures.backlog_seconds, fmt::format("the queue is full: {} requests wait, at most {} may",
                                                        figures.queued_requests, options.max_queued_requests));
}

std::string ServerContext::fingerprint() const {
  static const std::string build = build_id();
  const std::string what = fmt::format("{} {} {}", build, options.numerics, model_name());
  return fmt::format("fp_{:016x}", XXH3_64bits(what.data(), what.size()));
}

}  // namespace headrace::server
