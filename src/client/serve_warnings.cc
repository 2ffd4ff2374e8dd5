#include "client/serve_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "client/serve_figures.h"

namespace headrace::client {
namespace {

using Warnings = std::vector<std::string>;

void warn_of_errors(const LoadRun& run, Warnings& out) {
  std::map<std::string, int64_t> errors;
  for (const RequestRecord& r : run.records) {
    if (r.status == RequestStatus::kFailed || r.status == RequestStatus::kIncomplete) {
      ++errors[fmt::format("{}: {}", status_name(r.status), printable(r.error, 200))];
    }
  }
  constexpr size_t kMostKinds = 5;
  std::vector<std::pair<int64_t, std::string>> by_count;
  for (const auto& [text, count] : errors) by_count.emplace_back(count, text);
  std::ranges::sort(by_count, std::greater{});
  for (size_t i = 0; i < std::min(by_count.size(), kMostKinds); ++i) {
    out.push_back(fmt::format("{} of {} requests {}", by_count[i].first, run.records.size(), by_count[i].second));
  }
  if (by_count.size() > kMostKinds) out.push_back(fmt::format("{} more kinds of errors", by_count.size() - kMostKinds));
}

void warn_of_counts(const LoadRun& run, Warnings& out) {
  int64_t other_chunks = 0, other_prompt = 0, no_usage = 0, too_short = 0, no_marker = 0, completed = 0;
  for (const RequestRecord& r : run.records) {
    if (r.status != RequestStatus::kCompleted) continue;
    ++completed;
    if (!r.usage_completion_tokens) ++no_usage;
    const auto events = static_cast<int64_t>(r.token_times.size());
    // The token that ends an answer by itself brings no event of its own.
    const int64_t unseen = r.usage_completion_tokens.value_or(events) - events;
    if (unseen < 0 || unseen > 1) ++other_chunks;
    if (r.usage_prompt_tokens && r.prompt_tokens > 0 && *r.usage_prompt_tokens != r.prompt_tokens) ++other_prompt;
    if (output_tokens(r) < r.max_tokens) ++too_short;
    if (!r.done_marker) ++no_marker;
  }
  const auto warn = [&](int64_t count, std::string_view what) {
    if (count > 0) out.push_back(fmt::format("{} of {} requests {}", count, completed, what));
  };
  warn(no_usage, "came without usage: their tokens are counted by events");
  warn(other_chunks,
       "have another number of events than tokens by usage: gaps are those between events, not between tokens");
  warn(other_prompt, "had another prompt length by usage than the client meant to send");
  warn(too_short, "were answered with fewer tokens than asked for (--ignore-eos makes lengths equal)");
  warn(no_marker, "ended without [DONE]");
}

}  // namespace

std::vector<std::string> run_warnings(const LoadRun& run, const ServeFigures& f) {
  Warnings out;
  warn_of_errors(run, out);
  warn_of_counts(run, out);
  if (f.first_text.mean > 1.05 * f.ttft.mean && f.completed > 0) {
    out.push_back(fmt::format("the first event has no text: TTFT is {:.1f} ms, the first text comes after {:.1f} ms",
                              f.ttft.mean * 1e3, f.first_text.mean * 1e3));
  }
  constexpr double kBusy = 0.5;
  constexpr double kLate = 0.010;
  if (f.cpu_share > kBusy) {
    out.push_back(
        fmt::format("the client used {:.0f} % of a processor: its figures may be its own", 100 * f.cpu_share));
  }
  if (f.send_lag.p99 > kLate) {
    out.push_back(fmt::format("requests were sent late: {:.1f} ms at P99", f.send_lag.p99 * 1e3));
  }
  return out;
}

}  // namespace headrace::client
