#include "client/serve_figures.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "client/serve_warnings.h"

namespace headrace::client {
namespace {

void count_statuses(const LoadRun& run, ServeFigures& f) {
  for (const RequestRecord& r : run.records) {
    switch (r.status) {
      case RequestStatus::kCompleted:
        ++f.completed;
        break;
      case RequestStatus::kFailed:
        ++f.failed;
        break;
      case RequestStatus::kIncomplete:
        ++f.incomplete;
        break;
      case RequestStatus::kCancelled:
        ++f.cancelled;
        break;
    }
  }
  f.not_sent = run.not_sent;
}

/// Most requests that were out at the same time.
int64_t most_concurrent(const std::vector<RequestRecord>& records) {
  std::vector<std::pair<double, int>> changes;
  for (const RequestRecord& r : records) {
    changes.emplace_back(r.sent, 1);
    changes.emplace_back(r.end, -1);
  }
  std::ranges::sort(changes);  // an end comes before a beginning at the same time
  int64_t now = 0, most = 0;
  for (const auto& [at, change] : changes) most = std::max(most, now += change);
  return most;
}

void take_latencies(const LoadRun& run, const GoodputLimits& limits, ServeFigures& f) {
  std::vector<double> ttft, first_text, itl, tpot, tpot_with_first, e2el;
  std::map<int64_t, double> in_second;
  int64_t good = 0;
  for (const RequestRecord& r : run.records) {
    if (r.status != RequestStatus::kCompleted) continue;
    const RequestLatencies l = latencies_of(r);
    f.input_tokens += input_tokens(r);
    f.output_tokens += output_tokens(r);
    f.cached_tokens += r.cached_tokens.value_or(0);
    ttft.push_back(l.ttft);
    e2el.push_back(l.e2el);
    if (l.first_text) first_text.push_back(*l.first_text);
    if (l.tpot) tpot.push_back(*l.tpot);
    if (l.tpot_with_first) tpot_with_first.push_back(*l.tpot_with_first);
    for (const double gap : token_gaps(r)) itl.push_back(gap);
    // Where an event carries several tokens, each stands for its share of them.
    const double each =
        r.token_times.empty() ? 0 : static_cast<double>(output_tokens(r)) / static_cast<double>(r.token_times.size());
    for (const double at : r.token_times) in_second[static_cast<int64_t>(at)] += each;
    if (is_good(r, limits)) ++good;
  }
  for (const auto& [second, tokens] : in_second) f.peak_output_rate = std::max(f.peak_output_rate, tokens);
  for (const double latency : e2el) f.mean_concurrency += f.duration > 0 ? latency / f.duration : 0;
  if (limits.any() && f.duration > 0) f.goodput = static_cast<double>(good) / f.duration;
  f.ttft = spread_of(std::move(ttft));
  f.first_text = spread_of(std::move(first_text));
  f.itl = spread_of(std::move(itl));
  f.tpot = spread_of(std::move(tpot));
  f.tpot_with_first = spread_of(std::move(tpot_with_first));
  f.e2el = spread_of(std::move(e2el));
}

void take_own_cost(const LoadRun& run, ServeFigures& f) {
  std::vector<double> send_lag, held_back;
  double tokens = 0;
  for (const RequestRecord& r : run.records) {
    send_lag.push_back(r.sent - r.due);
    held_back.push_back(r.due - r.arrival);
    tokens += static_cast<double>(output_tokens(r));
  }
  f.send_lag = spread_of(std::move(send_lag));
  f.held_back = spread_of(std::move(held_back));
  f.cpu_seconds = run.cpu_seconds;
  f.cpu_share = run.duration > 0 ? run.cpu_seconds / run.duration : 0;
  f.cpu_per_token = tokens > 0 ? run.cpu_seconds / tokens : 0;
  f.longest_turn = run.longest_turn_seconds;
}

}  // namespace

RequestLatencies latencies_of(const RequestRecord& r) {
  RequestLatencies l;
  l.ttft = r.first_chunk - r.sent;
  l.e2el = r.last_chunk - r.sent;
  if (r.first_text > 0) l.first_text = r.first_text - r.sent;
  const auto tokens = static_cast<double>(output_tokens(r));
  if (tokens > 1) l.tpot = (l.e2el - l.ttft) / (tokens - 1);
  if (tokens > 0) l.tpot_with_first = l.e2el / tokens;
  return l;
}

bool is_good(const RequestRecord& record, const GoodputLimits& limits) {
  constexpr double kMs = 1e3;
  const RequestLatencies l = latencies_of(record);
  return (!limits.ttft || l.ttft * kMs <= *limits.ttft) && (!limits.tpot || l.tpot.value_or(0) * kMs <= *limits.tpot) &&
         (!limits.e2el || l.e2el * kMs <= *limits.e2el);
}

ServeFigures serve_figures(const LoadRun& run, const GoodputLimits& limits) {
  ServeFigures f;
  f.duration = run.duration;
  f.max_concurrency = run.max_concurrency;
  count_statuses(run, f);
  take_latencies(run, limits, f);
  take_own_cost(run, f);
  f.most_concurrent = most_concurrent(run.records);
  if (f.duration > 0) {
    f.request_rate = static_cast<double>(f.completed) / f.duration;
    f.output_rate = static_cast<double>(f.output_tokens) / f.duration;
    f.total_rate = static_cast<double>(f.input_tokens + f.output_tokens) / f.duration;
  }
  if (f.max_concurrency > 0 && f.e2el.mean > 0) f.loop_rate = static_cast<double>(f.max_concurrency) / f.e2el.mean;
  f.pace = pace_figures(run.records);
  f.warnings = run_warnings(run, f);
  return f;
}

}  // namespace headrace::client
