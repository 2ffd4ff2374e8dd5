#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/request_figures.h"
#include "server/server_state.h"

namespace headrace::server {

/// What the HTTP side of the server has to do.
struct ConnectionFigures {
  int64_t connections = 0;
  int64_t open_requests = 0;  ///< whose answers are not complete
};

/// The figures of a server in the text format of Prometheus 0.0.4; docs/metrics.md lists them. Threading: every
/// function from any thread.
class Metrics {
 public:
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  /// `compat`: whose names are given beside our own: "vllm", "sglang", "llamacpp". Throws Error for any other.
  explicit Metrics(const std::vector<std::string>& compat);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// The text of GET /metrics. Never waits for the engine.
  [[nodiscard]] std::string text(const ServerState& state, const std::string& model_name,
                                 const ConnectionFigures& connections = {});

  /// What RequestWatch measures, and whoever refuses requests counts.
  [[nodiscard]] RequestFigures& requests() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::server
