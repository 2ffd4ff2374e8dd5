#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "openai/sampling_fields.h"
#include "server/http_server.h"

namespace headrace::server {

/// What an operator sets; the rows are in apps/serve_flags.cc.
struct ServeOptions {
  HttpOptions http = {};
  std::optional<uint16_t> grpc_port = {};            ///< of the gRPC service, at the same address; 0: any that is free
  std::function<void()> terminate = {};              ///< ends the server as SIGTERM does; empty: no client may
  std::vector<std::string> served_model_names = {};  ///< the first one is shown in answers; empty: the model's own
  std::string version = {};                          ///< of this program
  std::string numerics = {};                         ///< of the model, for the fingerprint
  openai::RequestLimits limits = {};

  std::string api_key_file = {};                  ///< empty: no key is asked for
  std::vector<std::string> allowed_origins = {};  ///< CORS; empty: none

  // As the model is loaded with them.
  int32_t max_num_seqs = 256;
  int32_t max_queued_requests = 4096;

  bool trust_request_chat_template = false;  ///< requests may bring a template of their own
  bool merge_system_messages = false;     ///< a template that refuses system messages further on gets one at the front
  std::string tool_call_parser = "auto";  ///< "hermes", "llama3", "mistral"; auto: by the model's template
  std::string reasoning_parser = "auto";  ///< "deepseek_r1", "qwen3", "none"; auto: by the model's template

  double queue_timeout_seconds = 0;    ///< a request that has not begun by then gets 504; 0: none
  double request_timeout_seconds = 0;  ///< one that has not ended by then; 0: none
  double drain_timeout_seconds = 300;  ///< after SIGTERM, requests that still run are cut after this time

  std::vector<std::string> metrics_compat = {"vllm"};  ///< further names of metrics: "vllm", "sglang", "llamacpp"
  std::string log_format = "text";                     ///< "text" or "json"
  bool log_requests = true;                            ///< one line for each request
  std::string otlp_traces_endpoint = {};               ///< "http://HOST:PORT/v1/traces"; empty: no traces
};

}  // namespace headrace::server
