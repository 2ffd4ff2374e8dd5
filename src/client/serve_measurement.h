#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/arrivals.h"
#include "client/bench_data.h"
#include "client/load_run.h"
#include "client/openai_target.h"
#include "client/rate_search.h"
#include "client/serve_figures.h"

namespace headrace::client {

/// What to measure: each rate with each number of clients, or a search for the highest rate within limits.
struct ServeBenchSpec {
  OpenAiTarget target;  ///< without a model: the first that the server lists
  HttpClient::Options http;
  DataSpec data;
  std::vector<double> rates{kUnlimited};
  std::vector<int64_t> concurrencies{0};
  double burstiness = 1;
  double trace_speed = 1;  ///< a recorded load runs so many times faster
  uint64_t seed = 0;
  bool cold_cache = true;
  int64_t warmups = -1;  ///< requests before the first run; -1: one for each client, at least one
  GoodputLimits goodput;
  bool search_rate = false;
  RateSearch::Options search;
  std::optional<double> max_mean_ttft, max_mean_latency;  ///< of the search, seconds
  std::function<bool()> stop;
  std::function<void(std::string_view what, size_t done, size_t total)> progress;
};

struct ServeRun {
  double rate = kUnlimited;
  int64_t max_concurrency = 0;
  LoadRun load;
  ServeFigures figures;
};

struct ServeBenchResult {
  std::string model;
  CacheState cache = CacheState::kWarm;
  std::string token_source;  ///< who counted the tokens of the prompts
  std::vector<ServeRun> runs;
  std::optional<double> best_rate;  ///< found by the search
  bool interrupted = false;
};

/// Asks the server what it can do, makes the prompts, warms up and runs. Throws Error where the server does not answer
/// one request, or data cannot be read.
[[nodiscard]] ServeBenchResult run_serve_bench(ServeBenchSpec spec);

}  // namespace headrace::client
