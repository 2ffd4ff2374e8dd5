#include "engine/load_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace headrace {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {.mean = mean,
          .std = std::sqrt(squares / n),
          .median = percentile(values, 0.5),
          .p90 = percentile(values, 0.9),
          .p95 = percentile(values, 0.95),
          .p99 = percentile(values, 0.99),
          .max = values.back()};
}

LoadFigures load_figures(std::span<const RequestTimes> requests) {
  LoadFigures figures;
  if (requests.empty()) return figures;
  double begin = requests[0].arrival;
  double end = begin;
  for (const RequestTimes& request : requests) {
    begin = std::min(begin, request.arrival);
    end = std::max(end, request.tokens.back());
  }
  std::vector<double> ttft, itl, tpot, e2el;
  std::map<int64_t, int64_t> in_second;
  for (const RequestTimes& request : requests) {
    const std::vector<double>& tokens = request.tokens;
    figures.input_tokens += request.prompt_tokens;
    figures.output_tokens += static_cast<int64_t>(tokens.size());
    ttft.push_back(tokens.front() - request.arrival);
    e2el.push_back(tokens.back() - request.arrival);
    for (size_t i = 1; i < tokens.size(); ++i) itl.push_back(tokens[i] - tokens[i - 1]);
    if (tokens.size() > 1) tpot.push_back((tokens.back() - tokens.front()) / static_cast<double>(tokens.size() - 1));
    for (const double at : tokens) ++in_second[static_cast<int64_t>(at - begin)];
  }
  for (const auto& [second, tokens] : in_second) {
    figures.peak_rate = std::max(figures.peak_rate, static_cast<double>(tokens));
  }
  figures.requests = static_cast<int64_t>(requests.size());
  figures.duration = end - begin;
  if (figures.duration > 0) {
    figures.request_rate = static_cast<double>(figures.requests) / figures.duration;
    figures.output_rate = static_cast<double>(figures.output_tokens) / figures.duration;
    figures.total_rate = static_cast<double>(figures.input_tokens + figures.output_tokens) / figures.duration;
  }
  figures.ttft = spread_of(std::move(ttft));
  figures.itl = spread_of(std::move(itl));
  figures.tpot = spread_of(std::move(tpot));
  figures.e2el = spread_of(std::move(e2el));
  return figures;
}

}  // namespace headrace
