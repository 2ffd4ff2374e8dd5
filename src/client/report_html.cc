#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "client/line_chart.h"
#include "client/serve_report.h"

namespace headrace::client {
namespace {

/// Share of values that are at most x, in at most some hundred points.
ChartSeries distribution(std::string name, std::vector<double> values) {
  constexpr size_t kPoints = 200;
  std::ranges::sort(values);
  ChartSeries series{.name = std::move(name), .points = {}};
  const size_t step = std::max<size_t>(1, values.size() / kPoints);
  for (size_t i = 0; i < values.size(); i += step) {
    series.points.emplace_back(values[i] * 1e3,
                               100.0 * static_cast<double>(i + 1) / static_cast<double>(values.size()));
  }
  if (!values.empty()) series.points.emplace_back(values.back() * 1e3, 100.0);
  return series;
}

std::string run_charts(const ServeRun& run) {
  std::vector<double> ttft, itl, e2el;
  std::map<int64_t, double> tokens;
  for (const RequestRecord& record : run.load.records) {
    for (const double at : record.token_times) tokens[static_cast<int64_t>(at)] += 1;
    if (record.status != RequestStatus::kCompleted) continue;
    const RequestLatencies l = latencies_of(record);
    ttft.push_back(l.ttft);
    e2el.push_back(l.e2el);
    for (const double gap : token_gaps(record)) itl.push_back(gap);
  }
  ChartSeries per_second{.name = "tokens/s", .points = {}};
  for (int64_t second = 0; second < static_cast<int64_t>(std::ceil(run.figures.duration)); ++second) {
    per_second.points.emplace_back(static_cast<double>(second) + 0.5, tokens.contains(second) ? tokens[second] : 0);
  }
  std::string html = "<div class=\"charts\">";
  html += chart_svg({.title = "Output over time",
                     .x_label = "seconds since the start",
                     .y_label = "tokens in each second",
                     .series = {per_second}});
  const auto share_of = [&](const char* title, const char* name, std::vector<double> values) {
    html += chart_svg({.title = title,
                       .x_label = "milliseconds",
                       .y_label = "% at most",
                       .series = {distribution(name, std::move(values))}});
  };
  share_of("Time to first token", "TTFT", std::move(ttft));
  share_of("Gaps between tokens", "ITL", std::move(itl));
  share_of("Latency", "E2EL", std::move(e2el));
  return html + "</div>\n";
}

std::string sweep_charts(const ServeBenchResult& result) {
  ChartSeries mean{.name = "mean", .points = {}}, p95{.name = "P95", .points = {}}, first{.name = "mean", .points = {}},
      first_p99{.name = "P99", .points = {}}, output{.name = "output", .points = {}};
  std::map<double, ChartSeries> pace;
  const bool by_rate = std::ranges::any_of(result.runs, [](const ServeRun& run) { return !std::isinf(run.rate); });
  std::vector<const ServeRun*> runs;
  for (const ServeRun& run : result.runs) runs.push_back(&run);
  const auto load_of = [&](const ServeRun& run) {
    return by_rate ? run.rate : static_cast<double>(run.max_concurrency);
  };
  std::ranges::stable_sort(runs, {}, [&](const ServeRun* run) { return load_of(*run); });
  for (const ServeRun* run : runs) {
    const ServeFigures& f = run->figures;
    const double load = load_of(*run);
    if (std::isinf(load)) continue;
    mean.points.emplace_back(f.request_rate, f.e2el.mean * 1e3);
    p95.points.emplace_back(f.request_rate, f.e2el.p95 * 1e3);
    first.points.emplace_back(load, f.ttft.mean * 1e3);
    first_p99.points.emplace_back(load, f.ttft.p99 * 1e3);
    output.points.emplace_back(load, f.output_rate);
    for (const EffectiveThroughput& rate : f.pace.by_averages) {
      pace[rate.answer_rate].name = fmt::format("{:g} tok/s", rate.answer_rate);
      pace[rate.answer_rate].points.emplace_back(load, rate.rate);
    }
  }
  std::vector<ChartSeries> paces;
  for (auto& [rate, series] : pace) paces.push_back(std::move(series));
  const std::string load_label = by_rate ? "requests/s offered" : "clients";
  std::string html = "<div class=\"charts\">";
  const auto chart = [&](const char* title, const std::string& x, const char* y, std::vector<ChartSeries> series) {
    html += chart_svg({.title = title, .x_label = x, .y_label = y, .series = std::move(series), .mark_points = true});
  };
  chart("Latency over throughput", "requests/s", "E2EL, ms", {mean, p95});
  chart("Output", load_label, "tokens/s", {output});
  chart("Time to first token", load_label, "TTFT, ms", {first, first_p99});
  chart("Effective throughput (moving average)", load_label, "requests/s that keep the pace", std::move(paces));
  return html + "</div>\n";
}

std::string latency_table(const ServeFigures& f) {
  std::string html = "<table><tr><th>ms<th>mean<th>std<th>p50<th>p90<th>p95<th>p99<th>max</tr>";
  for (const NamedSpread& row : latency_rows(f)) {
    const Spread& s = *row.spread;
    html +=
        fmt::format("<tr><td>{}<td>{:.2f}<td>{:.2f}<td>{:.2f}<td>{:.2f}<td>{:.2f}<td>{:.2f}<td>{:.2f}</tr>", row.title,
                    s.mean * 1e3, s.std * 1e3, s.median * 1e3, s.p90 * 1e3, s.p95 * 1e3, s.p99 * 1e3, s.max * 1e3);
  }
  return html + "</table>\n";
}

std::string run_section(const ServeBenchSpec& spec, const ServeRun& run) {
  const ServeFigures& f = run.figures;
  std::string html = fmt::format("<h2>{}</h2><p>", escape_html(load_name(spec, run)));
  html += fmt::format(
      "{} completed, {} failed, {} incomplete, {} cancelled in {:.2f} s. {:.3f} requests/s, {:.1f} output tokens/s, "
      "{:.1f} tokens/s in and out",
      f.completed, f.failed, f.incomplete, f.cancelled, f.duration, f.request_rate, f.output_rate, f.total_rate);
  if (f.goodput) html += fmt::format(", goodput {:.3f} requests/s", *f.goodput);
  html += fmt::format(". The client used {:.1f} % of a processor and sent {:.2f} ms late at P99.</p>\n",
                      100 * f.cpu_share, f.send_lag.p99 * 1e3);
  for (const std::string& warning : f.warnings) {
    html += fmt::format("<p class=\"warning\">{}</p>\n", escape_html(warning));
  }
  return html + latency_table(f) + run_charts(run);
}

}  // namespace

std::string report_html(const ServeBenchSpec& spec, const ServeBenchResult& result, const ReportHead& head) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>headrace bench serve</title>\n<style>\n";
  html += chart_style();
  html +=
      R"(body{background:var(--page);color:var(--ink);font:15px/1.5 sans-serif;max-width:1180px;margin:2rem auto;padding:0 1rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:1rem}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .75rem;border-bottom:1px solid var(--line);text-align:right}
td:first-child,th:first-child{text-align:left}.warning{color:var(--c1)}.soft{color:var(--soft)}
</style></head><body>
)";
  html += fmt::format(
      "<h1>{}</h1>\n<p class=\"soft\">{}{}, {}; {} prompts, seed {}, prefix cache {}, prompt tokens "
      "counted by {}; {}</p>\n",
      escape_html(result.model), escape_html(spec.target.base_url), escape_html(spec.target.endpoint), head.date,
      escape_html(spec.data.name), spec.seed, cache_state_name(result.cache), escape_html(result.token_source),
      escape_html(head.client));
  for (const std::string& entry : head.metadata) html += fmt::format("<p class=\"soft\">{}</p>\n", escape_html(entry));
  if (spec.search_rate && result.best_rate) {
    html += fmt::format("<p>Highest rate within the limits: {:.2f} requests/s</p>\n", *result.best_rate);
  }
  if (result.runs.size() > 1) html += sweep_charts(result);
  for (const ServeRun& run : result.runs) html += run_section(spec, run);
  return html + "</body></html>\n";
}

}  // namespace headrace::client
