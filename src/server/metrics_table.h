#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/headrace.h"
#include "server/metrics.h"
#include "server/request_figures.h"

namespace headrace::server {

/// All that a scrape may tell of.
struct Scrape {
  ModelFigures model = {};
  ClusterFigures cluster = {};
  bool has_model = false;
  int64_t max_model_len = 0;
  int64_t kv_cache_tokens = 0;
  Phase phase = Phase::kLoading;
  double load_progress = 0;
  ConnectionFigures connections = {};
  double prompt_tokens_per_second = 0;      ///< of late
  double generation_tokens_per_second = 0;  ///< of late
  int64_t recent_preemptions = 0;
  const RequestFigures* requests = nullptr;
};

/// One of several series of a metric.
struct MetricSeries {
  std::vector<prometheus::ClientMetric::Label> labels;
  double value;
};
/// A distribution of which only number and sum are known.
struct MetricSums {
  int64_t count;
  double sum;
};
using MetricValueFn = double (*)(const Scrape&);
using MetricSeriesFn = std::vector<MetricSeries> (*)(const Scrape&);
using MetricSumsFn = MetricSums (*)(const Scrape&);

/// A metric of our own, or one that only other servers have.
struct MetricRow {
  std::string_view name;  ///< "headrace_requests_running"; the part before ':' or '_' says whose it is
  prometheus::MetricType type;
  std::string_view help;
  std::variant<MetricValueFn, MetricSeriesFn, MetricSumsFn, RequestHistogram> source;
};

/// Another server's name for one of our metrics.
struct MetricAlias {
  std::string_view name;  ///< "vllm:num_requests_running"
  std::string_view own;
};

[[nodiscard]] std::span<const MetricRow> metric_rows() noexcept;
[[nodiscard]] std::span<const MetricAlias> metric_aliases() noexcept;
/// The row of that name. There is one: the test of the table looks.
[[nodiscard]] const MetricRow& metric_row(std::string_view name) noexcept;

/// The servers whose names the tables know.
[[nodiscard]] std::span<const std::string_view> metric_dialects() noexcept;
/// "headrace", "vllm", "sglang" or "llamacpp": whose name it is.
[[nodiscard]] std::string_view metric_dialect(std::string_view name) noexcept;

/// The tables as the part of docs/metrics.md that lists them.
[[nodiscard]] std::string metrics_reference();

}  // namespace headrace::server
