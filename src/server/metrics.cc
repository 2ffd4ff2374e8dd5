#include "server/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <sstream>
#include <utility>

#include "base/cat.h"
#include "base/error.h"
#include "server/metrics_table.h"

namespace headrace::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

Labels labels_of(std::string_view dialect, const std::string& model_name) {
  Labels labels;
  if (dialect == "llamacpp") return labels;
  labels.push_back({"model_name", model_name});
  if (dialect == "vllm") labels.push_back({"engine", "0"});
  if (dialect == "sglang") {
    labels.push_back({"engine_type", "unified"});
    labels.push_back({"tp_rank", "0"});
    labels.push_back({"pp_rank", "0"});
  }
  return labels;
}

ClientMetric single(MetricType type, Labels labels, double value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return metric;
}

/// Cuts buckets that no request can reach.
void cut_buckets(int64_t largest, ClientMetric::Histogram& histogram) {
  std::erase_if(histogram.bucket, [&](const ClientMetric::Bucket& bucket) {
    return bucket.upper_bound > static_cast<double>(largest) && bucket.upper_bound < std::numeric_limits<double>::max();
  });
}

/// Writes a row's metrics under a name of its own or of another server.
class FamilyMaker {
 public:
  FamilyMaker(const Scrape& scrape, const std::string& model_name) : scrape_(scrape), model_name_(model_name) {}

  [[nodiscard]] MetricFamily make(const MetricRow& row, std::string_view name) const {
    MetricFamily family{.name = std::string(name), .help = std::string(row.help), .type = row.type, .metric = {}};
    const Labels labels = labels_of(metric_dialect(name), model_name_);
    if (const auto* const value = std::get_if<MetricValueFn>(&row.source)) {
      family.metric.push_back(single(row.type, labels, (*value)(scrape_)));
    } else if (const auto* const series = std::get_if<MetricSeriesFn>(&row.source)) {
      for (const MetricSeries& one : (*series)(scrape_)) {
        Labels all = labels;
        all.insert(all.end(), one.labels.begin(), one.labels.end());
        family.metric.push_back(single(row.type, std::move(all), one.value));
      }
    } else {
      ClientMetric metric;
      metric.label = labels;
      metric.histogram = histogram(row);
      family.metric.push_back(std::move(metric));
    }
    return family;
  }

 private:
  [[nodiscard]] ClientMetric::Histogram histogram(const MetricRow& row) const {
    if (const auto* const sums = std::get_if<MetricSumsFn>(&row.source)) {
      const auto [count, sum] = (*sums)(scrape_);
      const auto samples = static_cast<uint64_t>(count);
      return {.sample_count = samples,
              .sample_sum = sum,
              .bucket = {{.cumulative_count = samples, .upper_bound = std::numeric_limits<double>::infinity()}}};
    }
    const RequestHistogram which = std::get<RequestHistogram>(row.source);
    ClientMetric::Histogram collected = scrape_.requests->collect(which);
    if (counts_tokens(which) && scrape_.has_model) cut_buckets(scrape_.max_model_len, collected);
    return collected;
  }

  const Scrape& scrape_;
  const std::string& model_name_;
};

}  // namespace

class Metrics::Impl {
 public:
  explicit Impl(const std::vector<std::string>& compat) {
    for (const std::string& name : compat) {
      if (std::ranges::find(metric_dialects(), name) == metric_dialects().end()) {
        throw Error(ErrorCode::kInvalidArgument,
                    cat("metrics of \"", printable(name), "\" are not known; expected ", "vllm, sglang or llamacpp"));
      }
    }
    const auto is_wanted = [&](std::string_view name) {
      const std::string_view dialect = metric_dialect(name);
      return dialect == "headrace" || std::ranges::find(compat, dialect) != compat.end();
    };
    for (const MetricRow& row : metric_rows()) {
      if (is_wanted(row.name)) shown_.emplace_back(row.name, &row);
    }
    for (const MetricAlias& alias : metric_aliases()) {
      if (is_wanted(alias.name)) shown_.emplace_back(alias.name, &metric_row(alias.own));
    }
  }

  [[nodiscard]] std::string text(Scrape scrape, const std::string& model_name) {
    scrape.requests = &requests_;
    add_rates(scrape);
    const FamilyMaker maker(scrape, model_name);
    std::vector<MetricFamily> families;
    families.reserve(shown_.size());
    for (const auto& [name, row] : shown_) families.push_back(maker.make(*row, name));
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families);
    return std::move(out).str();
  }

  [[nodiscard]] RequestFigures& requests() noexcept { return requests_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// What happened between two scrapes, a second apart at least: with several scrapers each sees a part of it.
  void add_rates(Scrape& scrape) {
    const std::scoped_lock lock(mutex_);
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - before_at_).count();
    if (seconds >= 1) {
      const auto rate = [&](int64_t ModelFigures::*counter) {
        return static_cast<double>(scrape.model.*counter - before_.*counter) / seconds;
      };
      prompt_rate_ = rate(&ModelFigures::prompt_tokens);
      generation_rate_ = rate(&ModelFigures::completion_tokens);
      recent_preemptions_ = scrape.model.preemptions - before_.preemptions;
      before_ = scrape.model;
      before_at_ = now;
    }
    scrape.prompt_tokens_per_second = prompt_rate_;
    scrape.generation_tokens_per_second = generation_rate_;
    scrape.recent_preemptions = recent_preemptions_;
  }

  std::vector<std::pair<std::string_view, const MetricRow*>> shown_;
  RequestFigures requests_;

  std::mutex mutex_;
  ModelFigures before_ = {};
  Clock::time_point before_at_ = Clock::now();
  double prompt_rate_ = 0;
  double generation_rate_ = 0;
  int64_t recent_preemptions_ = 0;
};

Metrics::Metrics(const std::vector<std::string>& compat) : impl_(std::make_unique<Impl>(compat)) {}
Metrics::~Metrics() = default;

std::string Metrics::text(const ServerState& state, const std::string& model_name,
                          const ConnectionFigures& connections) {
  Scrape scrape{.phase = state.phase(), .load_progress = state.load_progress(), .connections = connections};
  if (const Model* const model = state.model()) {
    scrape.model = model->figures();
    scrape.cluster = model->cluster_figures();
    scrape.has_model = true;
    scrape.max_model_len = model->max_model_len();
    scrape.kv_cache_tokens = model->kv_cache_tokens();
  }
  return impl_->text(std::move(scrape), model_name);
}

RequestFigures& Metrics::requests() noexcept { return impl_->requests(); }

}  // namespace headrace::server
