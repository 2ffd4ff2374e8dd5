#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/server_state.h"

namespace headrace::server {

/// The figures of a server in the text format of Prometheus 0.0.4. Threading: every function from any thread.
class Metrics {
 public:
  /// `compat`: whose names are given beside our own: "vllm", "sglang", "llamacpp".
  explicit Metrics(const std::vector<std::string>& compat);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// The text of GET /metrics. Never waits for the engine.
  [[nodiscard]] std::string text(const ServerState& state, const std::string& model_name);

 private:
  friend class RequestWatch;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::server
