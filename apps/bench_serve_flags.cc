#include "apps/bench_serve_flags.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/cat.h"
#include "base/error.h"
#include "client/serve_report.h"
#include "files/json_file.h"

namespace headrace {
namespace {

constexpr OptionRange kCount{.min = 1, .max = 1 << 24};
constexpr OptionRange kCountOrNone{.min = 0, .max = 1 << 24};
constexpr OptionRange kSeconds{.min = 0, .max = 1e7, .above_min = true};

OptionGroup server_flags(ServeBenchSettings& s) {
  return {"The server",
          {{.name = "base-url",
            .target = &s.base_url,
            .value_name = "URL",
            .default_text = "http://HOST:PORT",
            .help = "scheme, host and port of the server"},
           {.name = "host", .target = &s.host, .help = "host, where no --base-url is given"},
           {.name = "port", .target = &s.port, .range = {.min = 1, .max = 65535}, .help = "port of the same"},
           {.name = "backend",
            .target = &s.backend,
            .choices = {"openai", "vllm", "openai-chat"},
            .value_name = "KIND",
            .help = "openai-chat: the default of --endpoint is /v1/chat/completions"},
           {.name = "endpoint",
            .target = &s.endpoint,
            .value_name = "PATH",
            .default_text = "/v1/completions",
            .help = "one that ends in chat/completions is sent messages"},
           {.name = "model",
            .target = &s.model,
            .default_text = "the first that the server lists",
            .help = "name of the model in requests"},
           {.name = "api-key-file",
            .target = &s.api_key_file,
            .value_name = "FILE",
            .default_text = "$OPENAI_API_KEY",
            .help = "file whose first line is the key"},
           {.name = "header", .target = &s.headers, .value_name = "NAME:VALUE", .help = "header of each request"},
           {.name = "insecure", .target = &s.insecure, .help = "take any certificate of an https server"},
           {.name = "request-timeout", .target = &s.request_timeout, .range = kSeconds, .help = "seconds"}}};
}

OptionGroup data_flags(ServeBenchSettings& s) {
  return {
      "The prompts",
      {{.name = "dataset-name",
        .target = &s.dataset_name,
        .choices = {"random", "sharegpt", "prefix_repetition", "text", "custom", "trace"},
        .value_name = "KIND",
        .help =
            "random: words; sharegpt: conversations; prefix_repetition: a few beginnings that return; text: windows "
            "of a file, each a word further; custom: JSON Lines with prompt and output_tokens; trace: JSON Lines "
            "with timestamp (ms), input_length, output_length and perhaps prompt"},
       {.name = "dataset-path", .target = &s.dataset_path, .value_name = "FILE", .help = "the file that a kind reads"},
       {.name = "num-prompts", .target = &s.num_prompts, .range = kCount, .help = "requests of each run"},
       {.name = "seed", .target = &s.seed, .range = {.min = 0}, .help = "of arrivals, lengths and words"},
       {.name = "random-input-len",
        .target = &s.random_input_len,
        .range = kCount,
        .help = "tokens of a prompt of kind random or text, template included"},
       {.name = "random-output-len", .target = &s.random_output_len, .range = kCount, .help = "tokens of its answer"},
       {.name = "random-range-ratio",
        .target = &s.random_range_ratio,
        .range = {.min = 0, .max = 1},
        .help = "r: lengths lie between (1 - r) and (1 + r) times these, or deviate by r times them"},
       {.name = "length-distribution",
        .target = &s.length_distribution,
        .choices = {"uniform", "normal"},
        .value_name = "KIND",
        .help = "normal with a ratio of 0.3 is DeepSpeed-MII's"},
       {.name = "max-input-len", .target = &s.max_input_len, .range = kCount, .help = "longest prompt of these kinds"},
       {.name = "random-prefix-len",
        .target = &s.random_prefix_len,
        .range = kCountOrNone,
        .help = "tokens that all prompts of kind random begin with, beside their own"},
       {.name = "sharegpt-output-len",
        .target = &s.sharegpt_output_len,
        .range = kCountOrNone,
        .help = "tokens of each answer; 0: as many as the file's answer has"},
       {.name = "custom-output-len",
        .target = &s.custom_output_len,
        .range = kCount,
        .help = "tokens of an answer for which the file names no output_tokens"},
       {.name = "prefix-repetition-prefix-len", .target = &s.prefix_len, .range = kCountOrNone, .help = "tokens"},
       {.name = "prefix-repetition-suffix-len", .target = &s.suffix_len, .range = kCount, .help = "tokens"},
       {.name = "prefix-repetition-num-prefixes", .target = &s.num_prefixes, .range = kCount, .help = "beginnings"},
       {.name = "prefix-repetition-output-len", .target = &s.prefix_output_len, .range = kCount, .help = "tokens"}}};
}

OptionGroup load_flags_of(ServeBenchSettings& s) {
  return {
      "The load",
      {{.name = "request-rate",
        .target = &s.request_rate,
        .value_name = "R,...",
        .help = "requests a second, or inf for all at once; several with commas: one run each"},
       {.name = "max-concurrency",
        .target = &s.max_concurrency,
        .range = {.min = 0, .max = 65536},
        .default_text = "no limit",
        .help = "requests out at once; with the rate inf so many clients in a closed loop; several: one run each"},
       {.name = "burstiness",
        .target = &s.burstiness,
        .value_name = "X",
        .help = "shape of the gamma distributed gaps: 1 is Poisson, inf constant gaps"},
       {.name = "trace-speed", .target = &s.trace_speed, .range = kSeconds, .help = "a trace runs so much faster"},
       {.name = "num-warmups",
        .target = &s.num_warmups,
        .range = {.min = -1, .max = 1 << 20},
        .default_text = "one for each client",
        .help = "requests before the first run, which do not count"},
       {.name = "cache",
        .target = &s.cache,
        .choices = {"cold", "warm"},
        .value_name = "STATE",
        .help = "cold: no prompt is found in the server's prefix cache from an earlier run, by cache_salt or, where "
                "the server refuses that, by a text before each prompt"},
       {.name = "ignore-eos", .target = &s.ignore_eos, .help = "answers are as long as asked for"},
       {.name = "temperature", .target = &s.temperature, .value_name = "T", .help = "or default: the server's"},
       {.name = "top-p", .target = &s.top_p, .value_name = "P", .default_text = "the server's", .help = "nucleus"},
       {.name = "top-k", .target = &s.top_k, .value_name = "K", .default_text = "the server's", .help = "best tokens"},
       {.name = "extra-body", .target = &s.extra_body, .value_name = "JSON", .help = "more fields of each request"}}};
}

OptionGroup search_flags(ServeBenchSettings& s) {
  return {"Search for the highest rate",
          {{.name = "find-request-rate",
            .target = &s.find_request_rate,
            .help = "begins at --request-rate; steps, then doubles or halves, then bisects to 0.1 requests/s"},
           {.name = "max-mean-ttft-ms",
            .target = &s.max_mean_ttft_ms,
            .range = {.min = 0},
            .default_text = "no limit",
            .help = "limit of the mean time to the first token"},
           {.name = "max-mean-e2el-ms",
            .target = &s.max_mean_e2el_ms,
            .range = {.min = 0},
            .default_text = "no limit",
            .help = "limit of the mean latency"},
           {.name = "request-rate-step", .target = &s.request_rate_step, .range = kSeconds, .help = "first steps"},
           {.name = "request-rate-num-iters",
            .target = &s.request_rate_num_iters,
            .range = {.min = 1, .max = 1000},
            .help = "runs in steps before doubling"}}};
}

OptionGroup report_flags(ServeBenchSettings& s) {
  return {"The report",
          {{.name = "goodput",
            .target = &s.goodput,
            .value_name = "METRIC:MS",
            .help = "limits of a good request, as in ttft:200 tpot:50 e2el:9000",
            .many = true},
           {.name = "percentile-metrics",
            .target = &s.percentile_metrics,
            .choices = {"ttft", "first_text", "itl", "tpot", "tpot_with_first", "e2el"},
            .value_name = "NAMES",
            .default_text = "all",
            .help = "rows of the table of latencies"},
           {.name = "output",
            .letter = 'o',
            .target = &s.output,
            .choices = {"md", "json"},
            .value_name = "FORMAT",
            .help = "what is printed: tables in Markdown, or the JSON report"},
           {.name = "save-result", .target = &s.save_result, .help = "write the JSON report to a file"},
           {.name = "result-dir", .target = &s.result_dir, .value_name = "FOLDER", .help = "folder of that file"},
           {.name = "result-filename",
            .target = &s.result_filename,
            .value_name = "FILE",
            .default_text = "serve-DATE.json",
            .help = "its name"},
           {.name = "save-requests",
            .target = &s.save_requests,
            .value_name = "FILE",
            .help = "write each request of the last run there as a line of JSON, with the times of all tokens"},
           {.name = "html", .target = &s.html, .value_name = "FILE", .help = "write a page with curves there"},
           {.name = "compare",
            .target = &s.compare,
            .value_name = "FILE",
            .help = "a file of --save-requests whose answers are compared with those of the last run"},
           {.name = "metadata",
            .target = &s.metadata,
            .value_name = "KEY=VALUE",
            .help = "goes into the report: machine, link, what only you know",
            .many = true}}};
}

/// A number, or "inf" where that is allowed. `least` is not accepted itself.
double read_number(std::string_view flag, std::string_view text, double least, bool may_be_inf) {
  if (may_be_inf && text == "inf") return client::kUnlimited;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end || !std::isfinite(value) || value <= least) {
    throw Error(ErrorCode::kInvalidArgument,
                cat(flag, ": '", printable(text), "' is not a number above ", least, may_be_inf ? ", nor inf" : ""));
  }
  return value;
}

std::vector<double> read_rates(std::string_view text) {
  std::vector<double> rates;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    rates.push_back(read_number("--request-rate", text.substr(from, comma - from), 0, true));
    from = comma + 1;
  }
  return rates;
}

std::string read_api_key(const ServeBenchSettings& s) {
  if (s.api_key_file.empty()) {
    const char* key = std::getenv("OPENAI_API_KEY");
    return key != nullptr ? key : "";
  }
  std::string key = read_text_file(s.api_key_file);
  key.resize(std::min(key.find_first_of("\r\n"), key.size()));
  if (key.empty()) throw LoadError(s.api_key_file, "no key in its first line", ErrorCode::kInvalidArgument);
  return key;
}

client::OpenAiTarget target_of(const ServeBenchSettings& s) {
  client::OpenAiTarget target;
  target.base_url = s.base_url.empty() ? cat("http://", s.host, ":", s.port) : s.base_url;
  if (!target.base_url.starts_with("http://") && !target.base_url.starts_with("https://")) {
    throw Error(ErrorCode::kInvalidArgument,
                cat("--base-url: '", printable(target.base_url), "' begins with neither http:// nor https://"));
  }
  const bool is_chat = s.backend == "openai-chat";
  target.endpoint = !s.endpoint.empty() ? s.endpoint : is_chat ? "/v1/chat/completions" : "/v1/completions";
  if (is_chat && !client::is_chat(target)) {
    throw Error(ErrorCode::kInvalidArgument, "--backend openai-chat: --endpoint must end in chat/completions");
  }
  target.model = s.model;
  target.headers = s.headers;
  for (std::string& header : target.headers) {
    const size_t place = header.find_first_of(":=");  // vllm writes KEY=VALUE
    if (place == std::string::npos) {
      throw Error(ErrorCode::kInvalidArgument, cat("--header: '", printable(header), "' is not NAME:VALUE"));
    }
    header[place] = ':';
  }
  target.api_key = read_api_key(s);
  target.ignore_eos = s.ignore_eos;
  if (s.temperature != "default") target.temperature = read_number("--temperature", s.temperature, -1e-9, false);
  if (!s.top_p.empty()) target.top_p = read_number("--top-p", s.top_p, 0, false);
  if (!s.top_k.empty()) target.top_k = static_cast<int64_t>(read_number("--top-k", s.top_k, -2, false));
  target.extra_body = s.extra_body;
  target.timeout_seconds = s.request_timeout;
  return target;
}

client::DataSpec data_of(const ServeBenchSettings& s) {
  client::DataSpec data;
  data.name = s.dataset_name;
  data.path = s.dataset_path;
  data.num_prompts = s.num_prompts;
  data.random_input_len = s.random_input_len;
  data.random_output_len = s.random_output_len;
  data.random_prefix_len = s.random_prefix_len;
  data.random_range_ratio = s.random_range_ratio;
  data.lengths = s.length_distribution == "normal" ? client::LengthKind::kNormal : client::LengthKind::kUniform;
  data.max_input_len = s.max_input_len;
  data.sharegpt_output_len = s.sharegpt_output_len;
  data.custom_output_len = s.custom_output_len;
  data.prefix_len = s.prefix_len;
  data.suffix_len = s.suffix_len;
  data.num_prefixes = s.num_prefixes;
  data.repetition_output_len = s.prefix_output_len;
  return data;
}

}  // namespace

std::vector<OptionGroup> serve_bench_flags(ServeBenchSettings& s) {
  return {server_flags(s), data_flags(s), load_flags_of(s), search_flags(s), report_flags(s)};
}

client::ServeBenchSpec serve_bench_spec(const ServeBenchSettings& s) {
  client::ServeBenchSpec spec;
  spec.target = target_of(s);
  spec.http.verify_peer = !s.insecure;
  spec.data = data_of(s);
  spec.rates = read_rates(s.request_rate);
  spec.concurrencies.assign(s.max_concurrency.begin(), s.max_concurrency.end());
  spec.burstiness = read_number("--burstiness", s.burstiness, 0, true);
  spec.trace_speed = s.trace_speed;
  spec.seed = static_cast<uint64_t>(s.seed);
  spec.cold_cache = s.cache == "cold";
  spec.warmups = s.num_warmups;
  spec.goodput = client::read_goodput(s.goodput);
  spec.search_rate = s.find_request_rate;
  if (!spec.search_rate) return spec;
  if (s.max_mean_ttft_ms == 0 && s.max_mean_e2el_ms == 0) {
    throw Error(ErrorCode::kInvalidArgument, "--find-request-rate needs --max-mean-ttft-ms or --max-mean-e2el-ms");
  }
  if (spec.rates.size() != 1 || spec.concurrencies.size() != 1 || s.dataset_name == "trace") {
    throw Error(ErrorCode::kInvalidArgument,
                "--find-request-rate: one --request-rate, one --max-concurrency, and no trace");
  }
  spec.search = {.first = std::isinf(spec.rates[0]) ? 1 : spec.rates[0],
                 .step = s.request_rate_step,
                 .linear_runs = s.request_rate_num_iters};
  if (s.max_mean_ttft_ms > 0) spec.max_mean_ttft = s.max_mean_ttft_ms * 1e-3;
  if (s.max_mean_e2el_ms > 0) spec.max_mean_latency = s.max_mean_e2el_ms * 1e-3;
  return spec;
}

std::vector<std::string> shown_metrics(const ServeBenchSettings& s) {
  return s.percentile_metrics.empty() ? client::ReportHead().shown : s.percentile_metrics;
}

}  // namespace headrace
