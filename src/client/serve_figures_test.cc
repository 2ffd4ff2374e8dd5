#include "client/serve_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/record_maker.h"
#include "files/test_folder.h"

namespace headrace::client {
namespace {

using testing::HasSubstr;

LoadRun run_of(std::vector<RequestRecord> records, double duration, int64_t clients = 0) {
  LoadRun run;
  for (size_t i = 0; i < records.size(); ++i) records[i].index = static_cast<int32_t>(i);
  run.records = std::move(records);
  run.duration = duration;
  run.max_concurrency = clients;
  return run;
}

TEST(ServeFigures, FollowTheDefinitions) {
  RequestRecord failed = completed_record(0.5, {0.6});
  failed.status = RequestStatus::kFailed;
  failed.error = "gone";
  failed.end = 8;
  LoadRun run = run_of({completed_record(1, {1.5, 1.6, 1.9}, 10), completed_record(2, {5}, 20), failed}, 8, 2);
  run.cpu_seconds = 0.4;
  const ServeFigures f = serve_figures(run, {});
  EXPECT_EQ(f.completed, 2);
  EXPECT_EQ(f.failed, 1);
  EXPECT_EQ(f.input_tokens, 30);
  EXPECT_EQ(f.output_tokens, 4);
  EXPECT_DOUBLE_EQ(f.request_rate, 0.25);
  EXPECT_DOUBLE_EQ(f.output_rate, 0.5);
  EXPECT_DOUBLE_EQ(f.total_rate, 4.25);
  EXPECT_DOUBLE_EQ(f.peak_output_rate, 3);
  EXPECT_DOUBLE_EQ(f.ttft.mean, (0.5 + 3) / 2);
  EXPECT_DOUBLE_EQ(f.e2el.mean, (0.9 + 3) / 2);
  EXPECT_DOUBLE_EQ(*f.loop_rate, 2 / 1.95);
  EXPECT_DOUBLE_EQ(f.mean_concurrency, 3.9 / 8);
  EXPECT_DOUBLE_EQ(f.itl.mean, 0.2);
  EXPECT_DOUBLE_EQ(f.tpot.mean, 0.2) << "of the request with more than one token";
  EXPECT_DOUBLE_EQ(f.tpot_with_first.mean, (0.3 + 3) / 2);
  EXPECT_DOUBLE_EQ(f.cpu_share, 0.05);
  EXPECT_DOUBLE_EQ(f.cpu_per_token, 0.08) << "five tokens, those of the failed request too";
  EXPECT_EQ(f.most_concurrent, 2);
  EXPECT_FALSE(f.goodput);
  ASSERT_EQ(f.warnings.size(), 1u);
  EXPECT_EQ(f.warnings[0], "1 of 3 requests failed: gone");
}

TEST(ServeFigures, GoodputTakesAllLimits) {
  // TTFT 500 ms, TPOT 200 ms, E2EL 900 ms; and a single token after 3 s, whose TPOT is 0.
  const LoadRun run = run_of({completed_record(1, {1.5, 1.6, 1.9}), completed_record(2, {5})}, 8);
  const auto goodput = [&](const std::vector<std::string>& limits) {
    return *serve_figures(run, read_goodput(limits)).goodput;
  };
  EXPECT_DOUBLE_EQ(goodput({"ttft:501"}), 0.125);
  EXPECT_DOUBLE_EQ(goodput({"ttft:499"}), 0);
  EXPECT_DOUBLE_EQ(goodput({"tpot:199"}), 0.125) << "the single token";
  EXPECT_DOUBLE_EQ(goodput({"tpot:201"}), 0.25);
  EXPECT_DOUBLE_EQ(goodput({"tpot:201", "e2el:901"}), 0.125);
  for (const char* text : {"", "ttft", "ttft:", "ttft:x", "ttft:-1", "itl:3", "ttft:1e999", "ttft:5ms"}) {
    EXPECT_THAT(error_of([&] { (void)read_goodput({text}); }), HasSubstr("--goodput")) << text;
  }
}

TEST(ServeFigures, RolesAndHeldBackTokensAreToldApart) {
  RequestRecord record = completed_record(0, {2, 3});
  record.first_chunk = 1;
  const ServeFigures f = serve_figures(run_of({record}, 3), {});
  EXPECT_DOUBLE_EQ(f.ttft.mean, 1);
  EXPECT_DOUBLE_EQ(f.first_text.mean, 2);
  EXPECT_DOUBLE_EQ(f.tpot.mean, 2) << "(3 - 1) / (2 - 1)";
  ASSERT_EQ(f.warnings.size(), 1u);
  EXPECT_THAT(f.warnings[0], HasSubstr("the first event has no text"));
}

TEST(ServeFigures, CountsOfUsageComeFirstAndDisagreementIsTold) {
  RequestRecord record = completed_record(0, {1, 2});
  record.usage_completion_tokens = 8;
  record.usage_prompt_tokens = 11;
  record.max_tokens = 9;
  record.done_marker = false;
  const ServeFigures f = serve_figures(run_of({record}, 4), {});
  EXPECT_EQ(f.output_tokens, 8);
  EXPECT_EQ(f.input_tokens, 11);
  EXPECT_DOUBLE_EQ(f.peak_output_rate, 4) << "each event stands for four tokens";
  ASSERT_EQ(f.warnings.size(), 4u);
  EXPECT_THAT(f.warnings[0], HasSubstr("another number of events than tokens"));
  EXPECT_THAT(f.warnings[1], HasSubstr("another prompt length"));
  EXPECT_THAT(f.warnings[2], HasSubstr("fewer tokens than asked for"));
  EXPECT_THAT(f.warnings[3], HasSubstr("without [DONE]"));
  record = completed_record(0, {1, 2});
  record.usage_completion_tokens = 3;
  EXPECT_TRUE(serve_figures(run_of({record}, 4), {}).warnings.empty()) << "a last token without text of its own";
  record.usage_completion_tokens.reset();
  EXPECT_EQ(serve_figures(run_of({record}, 4), {}).output_tokens, 2);
}

TEST(ServeFigures, SendLagIsNotTheWaitForAClient) {
  RequestRecord record = completed_record(1.0, {2});
  record.arrival = 0.25;
  record.due = 0.75;
  const ServeFigures f = serve_figures(run_of({record}, 2), {});
  EXPECT_DOUBLE_EQ(f.held_back.mean, 0.5);
  EXPECT_DOUBLE_EQ(f.send_lag.mean, 0.25);
  EXPECT_THAT(f.warnings.back(), HasSubstr("sent late"));
}

TEST(ServeFigures, OfNothingAreZero) {
  const ServeFigures f = serve_figures({}, {});
  EXPECT_EQ(f.completed, 0);
  EXPECT_EQ(f.request_rate, 0);
  EXPECT_TRUE(f.warnings.empty());
}

TEST(RequestRecord, SurvivesItsFile) {
  const TestFolder folder;
  RequestRecord a = completed_record(0.1, {0.30000000000000004, 1.0 / 3});
  a.text = "line\n\"two\" \xC3\xA9";
  RequestRecord b;
  b.index = 1;
  b.error = "refused";
  std::string text;
  for (const RequestRecord& r : {a, b}) text += record_json(r).dump() + "\n\n";
  EXPECT_EQ(read_records(folder.write("r.jsonl", text)), (std::vector<RequestRecord>{a, b}));
  EXPECT_THAT(error_of([&] { (void)read_records(folder.write("bad.jsonl", "\n{\"index\": 1}\n")); }),
              HasSubstr("bad.jsonl, line 2: not a record"));
  EXPECT_THAT(error_of([&] { (void)read_records(folder.write("bad.jsonl", "[]")); }),
              HasSubstr("expected a JSON object"));
}

}  // namespace
}  // namespace headrace::client
