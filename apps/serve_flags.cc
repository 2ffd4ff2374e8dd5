#include "apps/serve_flags.h"

#include "apps/load_flags.h"

namespace headrace {
namespace {

constexpr double kMostSeconds = 1e9;  // 30 years: a clock can count further

std::vector<Option> address_flags(ServeSettings& s) {
  server::HttpOptions& http = s.serve.http;
  return {
      {.name = "host",
       .target = &http.host,
       .value_name = "ADDRESS",
       .help = "address to listen on; 0.0.0.0 for all of this machine's"},
      {.name = "port",
       .target = &s.port,
       .range = {.min = 0, .max = 65535},
       .help = "port to listen on; 0: any that is free"},
      {.name = "grpc-port",
       .target = &s.grpc_port,
       .range = {.min = 0, .max = 65535},
       .default_text = "no gRPC",
       .help = "port of the gRPC service headrace.v1.Generation, at the same address; 0: any that is free"},
      {.name = "ssl-certfile",
       .target = &http.tls_certificate,
       .value_name = "FILE",
       .default_text = "no TLS",
       .help = "certificate chain, PEM: clients speak TLS"},
      {.name = "ssl-keyfile",
       .target = &http.tls_key,
       .value_name = "FILE",
       .default_text = "none",
       .help = "its private key, PEM"},
      {.name = "io-threads",
       .target = &http.threads,
       .range = {.min = 1, .max = 64},
       .help = "threads that speak with clients"},
      {.name = "served-model-name",
       .target = &s.serve.served_model_names,
       .value_name = "NAME",
       .default_text = "the model's own",
       .help = "name of the model in requests and answers; several: all are accepted, the first one is shown",
       .many = true},
      {.name = "dry-run", .target = &s.dry_run, .help = "check everything, load the model, print the figures, and end"},
  };
}

std::vector<Option> access_flags(ServeSettings& s) {
  server::ServeOptions& serve = s.serve;
  return {
      {.name = "api-key-file",
       .target = &serve.api_key_file,
       .value_name = "FILE",
       .default_text = "no key is asked for",
       .help = "keys that are accepted, one a line: KEY [name=N] [tenant=T] [salt=S] [concurrency=N] [rpm=N] [admin] "
               "[metrics]; "
               "only health can be asked without one"},
      {.name = "allowed-origins",
       .target = &serve.allowed_origins,
       .value_name = "ORIGIN",
       .default_text = "none",
       .help = "web pages of these origins may call the server (CORS)",
       .many = true},
      {.name = "allow-terminate",
       .target = &s.allow_terminate,
       .help = "callers with an admin's key (anyone, where no keys are asked for) may end the server over gRPC"},
      {.name = "trust-request-chat-template",
       .target = &serve.trust_request_chat_template,
       .help = "requests may bring a chat template of their own"},
  };
}

std::vector<Option> limit_flags(ServeSettings& s) {
  server::ServeOptions& serve = s.serve;
  return {
      {.name = "max-queued-requests",
       .target = &s.load.max_queued_requests,
       .range = {.min = 1, .max = 1 << 24},
       .help = "requests that wait to begin; more get 429 with Retry-After"},
      {.name = "max-queued-tokens",
       .target = &s.load.max_queued_tokens,
       .range = {.min = 1},
       .help = "tokens of their prompts"},
      {.name = "queue-timeout",
       .target = &serve.queue_timeout_seconds,
       .range = {.min = 0, .max = kMostSeconds},
       .value_name = "SECONDS",
       .help = "a request that has not begun by then gets 504; 0: it waits"},
      {.name = "request-timeout",
       .target = &serve.request_timeout_seconds,
       .range = {.min = 0, .max = kMostSeconds},
       .value_name = "SECONDS",
       .help = "a request that is not finished by then gets 504; 0: no limit"},
      {.name = "drain-timeout",
       .target = &serve.drain_timeout_seconds,
       .range = {.min = 0, .max = kMostSeconds},
       .value_name = "SECONDS",
       .help = "after SIGTERM, how long running requests may go on"},
      {.name = "max-body-bytes",
       .target = &serve.http.max_body_bytes,
       .range = {.min = 1024},
       .value_name = "BYTES",
       .help = "longest body of a request"},
      {.name = "max-connections",
       .target = &serve.http.max_connections,
       .range = {.min = 1, .max = 1 << 20},
       .help = "connections at once"},
      {.name = "max-choices",
       .target = &serve.limits.max_choices,
       .range = {.min = 1, .max = 4096},
       .help = "largest n and best_of of a request"},
  };
}

std::vector<Option> chat_flags(ServeSettings& s) {
  return {
      {.name = "chat-template",
       .target = &s.template_file,
       .value_name = "FILE",
       .default_text = "the model's own",
       .help = "Jinja template for conversations"},
      {.name = "merge-system-messages",
       .target = &s.serve.merge_system_messages,
       .help = "join system messages into one at the front, for templates that refuse them elsewhere"},
      {.name = "tool-call-parser",
       .target = &s.serve.tool_call_parser,
       .choices = {"auto", "hermes", "llama3", "mistral"},
       .value_name = "NAME",
       .help = "how the model writes calls of tools; auto: as its template shows"},
      {.name = "reasoning-parser",
       .target = &s.serve.reasoning_parser,
       .choices = {"auto", "deepseek_r1", "qwen3", "none"},
       .value_name = "NAME",
       .help = "how the model marks its reasoning; auto: as its template shows"},
  };
}

std::vector<Option> watching_flags(ServeSettings& s) {
  server::ServeOptions& serve = s.serve;
  return {
      {.name = "metrics-compat",
       .target = &serve.metrics_compat,
       .choices = {"vllm", "sglang", "llamacpp"},
       .value_name = "NAME",
       .default_text = "vllm",
       .help = "whose names of metrics are given beside Headrace's own",
       .many = true},
      {.name = "log-format",
       .target = &serve.log_format,
       .choices = {"text", "json"},
       .value_name = "NAME",
       .help = "of the log on standard error"},
      {.name = "log-requests", .target = &serve.log_requests, .help = "a line for each request"},
      {.name = "otlp-traces-endpoint",
       .target = &serve.otlp_traces_endpoint,
       .value_name = "URL",
       .default_text = "none are sent",
       .help = "where a span for each request is sent, as OTLP over HTTP in JSON"},
      {.name = "trace",
       .target = &s.trace,
       .value_name = "FILE",
       .default_text = "none",
       .help = "write a timeline of all steps, on each machine and on the links between them, for ui.perfetto.dev; it "
               "ends at 1 GiB"},
  };
}

}  // namespace

std::vector<OptionGroup> serve_flags(ServeSettings& s) {
  std::vector<Option> loading = load_flags(s.load);
  loading.push_back(cpu_list_flag(s.cpu_list));
  return {{"Address", address_flags(s)},
          {"Access", access_flags(s)},
          {"Limits", limit_flags(s)},
          {"Chat", chat_flags(s)},
          {"Watching", watching_flags(s)},
          {"Several machines", s.cluster.rows()},
          {"One file for all machines", config_rows(s.file, false)},
          {"Loading", std::move(loading)},
          {"Serving", serving_flags(s.load)},
          {"Several processes", rank_flags(s.load)}};
}

CommandLine serve_command_line(ServeSettings& s) {
  return CommandLine(
      "headrace serve",
      "Serves a model to any number of clients, by the OpenAI API. SIGTERM and Ctrl-C end it once what "
      "runs is answered; a second one ends it at once.",
      {{.name = "MODEL", .target = &s.model, .required = false, .help = kModelHelp}}, serve_flags(s),
      "Endpoints: /v1/chat/completions, /v1/completions, /v1/models, /v1/cluster, /tokenize, /detokenize, /metrics, "
      "/version, /livez, /readyz, /health, /ping.");
}

}  // namespace headrace
