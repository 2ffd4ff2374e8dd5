#include <fmt/format.h>

#include <algorithm>

#include "engine/simulation.h"

namespace headrace {
namespace {

/// When the given share of all output tokens had come.
double time_of_share(const SimulationResult& result, double share) {
  std::vector<double> tokens;
  for (const RequestTimes& request : result.requests) {
    tokens.insert(tokens.end(), request.tokens.begin(), request.tokens.end());
  }
  if (tokens.empty()) return 0;
  const auto at = tokens.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(tokens.size() - 1));
  std::nth_element(tokens.begin(), at, tokens.end());
  return *at;
}

/// Share of [begin, end) in which each of the spans' owners was busy.
std::vector<double> busy_share(const SimulationResult& result, std::vector<BusySpan> StepTimes::*spans, double begin,
                               double end) {
  std::vector<double> busy;
  for (const StepTimes& step : result.steps) {
    busy.resize((step.*spans).size());
    for (size_t i = 0; i < busy.size(); ++i) {
      const BusySpan& span = (step.*spans)[i];
      busy[i] += std::max(0.0, std::min(span.end, end) - std::max(span.begin, begin));
    }
  }
  for (double& seconds : busy) seconds = end > begin ? seconds / (end - begin) : 0;
  return busy;
}

std::vector<double> idle_share(const SimulationResult& result, double begin, double end) {
  std::vector<double> shares = busy_share(result, &StepTimes::stages, begin, end);
  for (double& share : shares) share = std::max(0.0, 1 - share);  // rounding
  return shares;
}

}  // namespace

PipelineFigures pipeline_figures(const SimulationResult& result) {
  PipelineFigures figures;
  if (result.steps.empty()) return figures;
  const double begin = result.steps.front().submitted;
  const double end = result.steps.back().done;
  figures.bubbles = idle_share(result, begin, end);
  figures.steady_bubbles = idle_share(result, time_of_share(result, 0.25), time_of_share(result, 0.75));
  figures.link_busy = busy_share(result, &StepTimes::links, begin, end);
  std::vector<double> seconds;
  double in_flight = 0;
  int64_t rows = 0;
  int64_t tokens = 0;
  for (const StepTimes& step : result.steps) {
    in_flight += step.done - step.submitted;
    rows += step.rows;
    tokens += step.work.tokens;
    double slowest = 0;
    for (const BusySpan& span : step.stages) slowest = std::max(slowest, span.end - span.begin);
    seconds.push_back(slowest);
  }
  const auto steps = static_cast<double>(result.steps.size());
  figures.mean_in_flight = end > begin ? in_flight / (end - begin) : 0;
  figures.mean_rows = static_cast<double>(rows) / steps;
  figures.mean_tokens = static_cast<double>(tokens) / steps;
  figures.step_seconds = spread_of(std::move(seconds));
  return figures;
}

void write_timeline(const SimulationResult& result, TraceWriter& trace) {
  if (result.steps.empty()) return;
  const size_t stages = result.steps[0].stages.size();
  std::vector<TraceWriter::Track> stage_tracks;
  std::vector<TraceWriter::Track> link_tracks;
  for (size_t i = 0; i < stages; ++i) {
    stage_tracks.push_back(trace.add_track(fmt::format("stage {}", i)));
    link_tracks.push_back(
        trace.add_track(i + 1 < stages ? fmt::format("link {} to {}", i, i + 1) : fmt::format("link {} to head", i)));
  }
  for (const StepTimes& step : result.steps) {
    const std::string name = fmt::format("step {}", raw(step.step_id));
    const std::string arguments = fmt::format(R"("rows":{},"tokens":{},"keys":{:.0f},"outputs":{})", step.rows,
                                              step.work.tokens, step.work.keys, step.work.outputs);
    for (size_t i = 0; i < stages; ++i) {
      trace.add_span(stage_tracks[i], name, step.stages[i].begin, step.stages[i].end, arguments);
      if (step.links[i].end > step.links[i].begin) {
        trace.add_span(link_tracks[i], name, step.links[i].begin, step.links[i].end, arguments);
      }
    }
  }
}

}  // namespace headrace
