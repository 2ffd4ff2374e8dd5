#include "client/serve_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/line_chart.h"
#include "client/record_maker.h"

namespace headrace::client {
namespace {

using testing::HasSubstr;
using testing::Not;

ServeBenchResult result_of(size_t runs) {
  ServeBenchResult result;
  result.model = "<model>";
  result.cache = CacheState::kColdSalt;
  result.token_source = "the server's /tokenize";
  for (size_t i = 0; i < runs; ++i) {
    ServeRun run;
    run.max_concurrency = static_cast<int64_t>(i) + 1;
    run.load.records = {completed_record(0, {0.5, 0.6, 0.8})};
    run.load.duration = 2;
    run.load.max_concurrency = run.max_concurrency;
    run.figures = serve_figures(run.load, {});
    result.runs.push_back(std::move(run));
  }
  return result;
}

TEST(ServeReport, JsonHasTheKeysOfVllm) {
  const auto json =
      report_json({}, result_of(1), {.date = "20261130-120000", .client = "c", .metadata = {"link=1 Gbit/s"}});
  for (const char* key : {"date",
                          "backend",
                          "model_id",
                          "num_prompts",
                          "request_rate",
                          "burstiness",
                          "max_concurrency",
                          "duration",
                          "completed",
                          "failed",
                          "total_input_tokens",
                          "total_output_tokens",
                          "request_throughput",
                          "request_goodput",
                          "output_throughput",
                          "total_token_throughput",
                          "max_output_tokens_per_s",
                          "max_concurrent_requests",
                          "mean_ttft_ms",
                          "median_ttft_ms",
                          "std_ttft_ms",
                          "p99_ttft_ms",
                          "mean_tpot_ms",
                          "p99_tpot_ms",
                          "mean_itl_ms",
                          "median_itl_ms",
                          "mean_e2el_ms",
                          "std_e2el_ms",
                          "p99_e2el_ms"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["request_rate"], "inf");
  EXPECT_EQ(json["completed"], 1);
  EXPECT_EQ(json["output_throughput"], 1.5);
  EXPECT_EQ(json["mean_ttft_ms"], 500);
  EXPECT_EQ(json["request_goodput"], nullptr);
  EXPECT_EQ(json["metadata"]["link"], "1 Gbit/s");
  const auto& own = json["headrace"];
  EXPECT_EQ(own["cache"], "cold (cache_salt)");
  EXPECT_EQ(own["effective_throughput_ema"].size(), 6u);
  EXPECT_EQ(own["closed_loop_request_throughput"], 1.25);
}

TEST(ServeReport, SeveralRunsAreListed) {
  ServeBenchSpec spec;
  spec.search_rate = true;
  ServeBenchResult result = result_of(2);
  result.best_rate = 3;
  const auto json = report_json(spec, result, {});
  EXPECT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["best_request_rate"], 3);
  const std::string text = report_markdown(spec, result, {});
  EXPECT_THAT(text, HasSubstr("| 2 clients | 1 | 0.500 | 1.5 |"));
  EXPECT_THAT(text, HasSubstr("highest rate within the limits: 3.00"));
}

TEST(ServeReport, MarkdownShowsTheRowsAskedFor) {
  const std::string text =
      report_markdown({}, result_of(1), {.date = {}, .client = {}, .metadata = {}, .shown = {"itl"}});
  EXPECT_THAT(text, HasSubstr("| gap between tokens (ITL) | 150.00 | 50.00 | 150.00 |"));
  EXPECT_THAT(text, Not(HasSubstr("TTFT")));
  EXPECT_THAT(text, HasSubstr("number of clients / mean latency: 1.250 requests/s"));
  EXPECT_THAT(text, HasSubstr("| moving average | 0.000 (0 %) |")) << "the first token took too long for 10 of prompt";
}

TEST(ServeReport, PageNeedsNothingElseAndQuotes) {
  const std::string html = report_html({}, result_of(2), {});
  EXPECT_THAT(html, HasSubstr("&lt;model&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("<model>")));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(html, HasSubstr("Latency over throughput"));
  for (const char* outside : {"src=", "href=", "@import", "url("}) EXPECT_THAT(html, Not(HasSubstr(outside)));
}

TEST(LineChart, MarksAreRoundNumbers) {
  EXPECT_DOUBLE_EQ(tick_distance(10, 5), 2);
  EXPECT_DOUBLE_EQ(tick_distance(11, 5), 5);
  EXPECT_DOUBLE_EQ(tick_distance(0.9, 8), 0.2);
  EXPECT_DOUBLE_EQ(tick_distance(3000, 6), 500);
  EXPECT_DOUBLE_EQ(tick_distance(60, 10), 10);
}

TEST(LineChart, PlacesPoints) {
  const std::string svg = chart_svg({.title = "t",
                                     .x_label = "x",
                                     .y_label = "y",
                                     .series = {{.name = "s", .points = {{0, 0}, {4, 10}}}},
                                     .mark_points = false});
  // From the lower left corner of the frame, (64, 256), to the upper right one, (544, 34).
  EXPECT_THAT(svg, HasSubstr("points=\"64.0,256.0 544.0,34.0 \""));
  EXPECT_THAT(chart_svg({}), HasSubstr("</svg>")) << "nothing to draw";
}

}  // namespace
}  // namespace headrace::client
