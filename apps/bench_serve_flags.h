#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "base/options_command_line.h"
#include "client/serve_measurement.h"

namespace headrace {

/// What the flags of `headrace bench serve` write into.
struct ServeBenchSettings {
  std::string backend = "openai", base_url, host = "127.0.0.1", endpoint, model, api_key_file, extra_body;
  int32_t port = 8000;
  std::vector<std::string> headers;
  bool insecure = false;
  double request_timeout = 3600;

  std::string dataset_name = "random", dataset_path, length_distribution = "uniform";
  int64_t num_prompts = 1000, seed = 0;
  int64_t random_input_len = 1024, random_output_len = 128, random_prefix_len = 0, max_input_len = 1 << 20;
  double random_range_ratio = 0;
  int64_t sharegpt_output_len = 0, custom_output_len = 256;
  int64_t prefix_len = 256, suffix_len = 256, num_prefixes = 10, prefix_output_len = 128;

  std::string request_rate = "inf", burstiness = "1", cache = "cold";
  std::vector<int32_t> max_concurrency{0};
  double trace_speed = 1;
  int64_t num_warmups = -1;
  bool ignore_eos = false;
  std::string temperature = "0", top_p, top_k;

  bool find_request_rate = false;
  double max_mean_ttft_ms = 0, max_mean_e2el_ms = 0, request_rate_step = 1;
  int32_t request_rate_num_iters = 1;

  std::vector<std::string> goodput, percentile_metrics, metadata;
  bool save_result = false;
  std::string result_filename, result_dir, save_requests, html, compare;
  std::string output = "md";
};

[[nodiscard]] std::vector<OptionGroup> serve_bench_flags(ServeBenchSettings& settings);

/// Throws Error(kInvalidArgument) where flags contradict each other; reads the key's file.
[[nodiscard]] client::ServeBenchSpec serve_bench_spec(const ServeBenchSettings& settings);

/// Rows of the table of latencies, from --percentile-metrics; empty: all.
[[nodiscard]] std::vector<std::string> shown_metrics(const ServeBenchSettings& settings);

}  // namespace headrace
