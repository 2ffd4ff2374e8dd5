#include "server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "base/cat.h"
#include "base/error.h"
#include "server/metrics_table.h"
#include "server/request_log.h"
#include "server/request_watch.h"

namespace headrace::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The samples of a scrape: "name{labels}" and value. Fails the test for text that breaks the format.
std::map<std::string, double> samples_of(const std::string& text) {
  std::map<std::string, double> samples;
  std::set<std::string> typed;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("# TYPE ")) {
      std::istringstream words(line.substr(7));
      std::string name;
      words >> name;
      EXPECT_TRUE(typed.insert(name).second) << "twice: " << name;
    }
    if (line.starts_with('#')) continue;
    const size_t space = line.rfind(' ');
    EXPECT_TRUE(samples.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second) << "twice: " << line;
  }
  return samples;
}

/// Names before labels.
std::set<std::string> names_of(const std::string& text) {
  std::set<std::string> names;
  for (const auto& [sample, value] : samples_of(text)) names.insert(sample.substr(0, sample.find('{')));
  return names;
}

class MetricsTest : public ::testing::Test {
 protected:
  /// A request for n answers that came just now.
  std::unique_ptr<RequestWatch> watch(RequestShape shape) {
    Exchange exchange;
    exchange.request.arrived = std::chrono::steady_clock::now();
    exchange.request_id = "r";
    return std::make_unique<RequestWatch>(metrics_, log_, nullptr, exchange, std::move(shape));
  }
  std::map<std::string, double> scrape() { return samples_of(metrics_.text(state_, "m")); }

  Metrics metrics_{{"vllm", "sglang", "llamacpp"}};
  RequestLog log_{RequestLog::Format::kText, false};
  ServerState state_;
};

/// What dashboards and routers query of each server. Metrics may be added to the table freely; a name that leaves it
/// must go on as an alias, and stays here.
const std::map<std::string, std::vector<std::string>> kQueried = {
    {"vllm",
     {"num_requests_running",
      "num_requests_waiting",
      "kv_cache_usage_perc",
      "gpu_cache_usage_perc",
      "lora_requests_info",
      "prompt_tokens_total",
      "generation_tokens_total",
      "prompt_tokens_cached_total",
      "prefix_cache_queries_total",
      "prefix_cache_hits_total",
      "gpu_prefix_cache_queries_total",
      "gpu_prefix_cache_hits_total",
      "cache_config_info",
      "iteration_tokens_total_bucket",
      "num_preemptions_total",
      "request_success_total",
      "admission_rejections_total",
      "spec_decode_num_drafts_total",
      "spec_decode_num_draft_tokens_total",
      "spec_decode_num_accepted_tokens_total",
      "spec_decode_num_accepted_tokens_per_pos_total",
      "time_to_first_token_seconds_bucket",
      "inter_token_latency_seconds_bucket",
      "time_per_output_token_seconds_bucket",
      "request_time_per_output_token_seconds_bucket",
      "e2e_request_latency_seconds_bucket",
      "request_queue_time_seconds_bucket",
      "request_prefill_time_seconds_bucket",
      "request_decode_time_seconds_bucket",
      "request_inference_time_seconds_bucket",
      "request_prompt_tokens_bucket",
      "request_generation_tokens_bucket",
      "request_max_num_generation_tokens_bucket",
      "request_params_n_bucket",
      "request_params_max_tokens_bucket",
      "time_to_first_token_seconds_sum",
      "time_to_first_token_seconds_count"}},
    {"sglang",
     {"num_running_reqs", "num_queue_reqs", "num_used_tokens", "token_usage", "gen_throughput", "cache_hit_rate",
      "max_total_num_tokens", "num_retracted_reqs", "spec_accept_length", "prompt_tokens_total",
      "generation_tokens_total", "cached_tokens_total", "num_requests_total", "num_aborted_requests_total",
      "time_to_first_token_seconds_bucket", "inter_token_latency_seconds_bucket", "e2e_request_latency_seconds_bucket",
      "queue_time_seconds_bucket"}},
    {"llamacpp",
     {"prompt_tokens_total", "prompt_seconds_total", "tokens_predicted_total", "tokens_predicted_seconds_total",
      "prompt_tokens_seconds", "predicted_tokens_seconds", "kv_cache_usage_ratio", "kv_cache_tokens",
      "requests_processing", "requests_deferred", "n_decode_total", "n_busy_slots_per_decode", "n_tokens_max"}},
};

TEST_F(MetricsTest, EveryNameThatIsQueriedIsThere) {
  for (const auto& [dialect, names] : kQueried) {
    Metrics metrics({dialect});
    const std::set<std::string> found = names_of(metrics.text(state_, "m"));
    for (const std::string& name : names) EXPECT_TRUE(found.contains(cat(dialect, ":", name))) << name;
    for (const std::string& name : found) {
      EXPECT_TRUE(name.starts_with("headrace_") || name.starts_with(cat(dialect, ":"))) << name;
    }
  }
}

TEST_F(MetricsTest, OwnNamesStandAlone) {
  Metrics metrics({});
  for (const std::string& name : names_of(metrics.text(state_, "m")))
    EXPECT_TRUE(name.starts_with("headrace_")) << name;
  EXPECT_THROW(Metrics({"vllm", "tgi"}), Error);
}

TEST_F(MetricsTest, EachServersLabels) {
  const std::string text = metrics_.text(state_, "my \"model\"\n");
  EXPECT_THAT(text, HasSubstr(R"(vllm:num_requests_running{model_name="my \"model\"\n",engine="0"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(sglang:num_queue_reqs{model_name="my \"model\"\n",engine_type="unified",)"
                              R"(tp_rank="0",pp_rank="0"} 0)"));
  EXPECT_THAT(text, HasSubstr("llamacpp:requests_processing 0\n"));
  EXPECT_THAT(text, HasSubstr(R"(headrace_requests_running{model_name="my \"model\"\n"} 0)"));
}

TEST_F(MetricsTest, BucketsAreThoseOfDashboards) {
  const auto bounds = [&](const std::string& name) {
    std::set<double> found;
    for (const auto& [sample, value] : scrape()) {
      if (!sample.starts_with(cat(name, "_bucket{"))) continue;
      const size_t at = sample.find("le=\"") + 4;
      found.insert(std::stod(sample.substr(at, sample.find('"', at) - at)));
    }
    return found;
  };
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(bounds("vllm:time_to_first_token_seconds"),
            (std::set<double>{.001, .005, .01, .02, .04, .06, .08, .1,  .25, .5,   .75, 1,
                              2.5,  5,    7.5, 10,  20,  40,  80,  160, 640, 2560, inf}));
  EXPECT_EQ(
      bounds("vllm:inter_token_latency_seconds"),
      (std::set<double>{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, inf}));
  EXPECT_EQ(bounds("vllm:e2e_request_latency_seconds"),
            (std::set<double>{.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,   20,
                              30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680, inf}));
}

TEST_F(MetricsTest, LengthsEndAtTheContext) {
  state_.set_ready(
      std::make_unique<Model>(Model::load(cat(HR_TEST_DATA, "/models/llama"), {.threads = 1, .max_model_len = 150})));
  const std::string text = metrics_.text(state_, "m");
  EXPECT_THAT(text, HasSubstr(R"(vllm:request_prompt_tokens_bucket{model_name="m",engine="0",le="100"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(vllm:request_prompt_tokens_bucket{model_name="m",engine="0",le="+Inf"} 0)"));
  EXPECT_THAT(text, Not(HasSubstr(R"(vllm:request_prompt_tokens_bucket{model_name="m",engine="0",le="200"} 0)")));
}

GenerationEvent tokens(int32_t choice, size_t count, const Usage& usage) {
  GenerationEvent event;
  event.choice = choice;
  event.tokens.resize(count);
  event.usage = usage;
  return event;
}

GenerationEvent final_event(const Usage& usage) {
  GenerationEvent event;
  event.usage = usage;
  event.last = true;
  return event;
}

TEST_F(MetricsTest, AScriptOfEvents) {
  const auto request = watch({.endpoint = "/v1/chat/completions", .choices = 2, .max_tokens = 64});
  request->event(0, GenerationEvent{});  // a long prompt is being read
  request->event(0, tokens(0, 1, {}));   // the first token
  request->event(0, tokens(1, 2, {}));   // the other answer's first ones
  request->event(0, tokens(0, 1, {}));   // a gap
  request->event(0, tokens(1, 3, {}));   // three gaps
  request->event(0, final_event({.prompt_tokens = 30,
                                 .cached_tokens = 16,
                                 .completion_tokens = 8,
                                 .queued_seconds = 0.5,
                                 .first_token_seconds = 2.5,
                                 .total_seconds = 8.5}));
  request->end(Outcome::kToolCalls, 200);
  request->end(Outcome::kError, 500);  // too late
  const std::string labels = R"({model_name="m",engine="0"})";
  std::map<std::string, double> found = scrape();
  const auto count = [&](const std::string& name) { return found[cat("vllm:", name, "_count", labels)]; };
  const auto sum = [&](const std::string& name) { return found[cat("vllm:", name, "_sum", labels)]; };
  EXPECT_EQ(count("time_to_first_token_seconds"), 1);
  EXPECT_EQ(count("inter_token_latency_seconds"), 4);
  EXPECT_EQ(count("time_per_output_token_seconds"), 4) << "the old name";
  EXPECT_EQ(count("e2e_request_latency_seconds"), 1);
  EXPECT_EQ(sum("request_queue_time_seconds"), 0.5);
  EXPECT_EQ(sum("request_prefill_time_seconds"), 2);
  EXPECT_EQ(sum("request_decode_time_seconds"), 6);
  EXPECT_EQ(sum("request_inference_time_seconds"), 8);
  EXPECT_EQ(sum("request_time_per_output_token_seconds"), 2) << "4 tokens of each answer, 3 gaps in 6 s";
  EXPECT_EQ(sum("request_prompt_tokens"), 30);
  EXPECT_EQ(sum("request_generation_tokens"), 8);
  EXPECT_EQ(sum("request_max_num_generation_tokens"), 5);
  EXPECT_EQ(sum("request_params_n"), 2);
  EXPECT_EQ(sum("request_params_max_tokens"), 64);
  EXPECT_EQ(found[R"(vllm:request_success_total{model_name="m",engine="0",finished_reason="stop"})"], 1);
  EXPECT_EQ(found[R"(vllm:request_success_total{model_name="m",engine="0",finished_reason="error"})"], 0);
  EXPECT_EQ(found[R"(headrace_requests_total{model_name="m",outcome="tool_calls"})"], 1);
  EXPECT_EQ(found["llamacpp:prompt_seconds_total"], 2);
  EXPECT_EQ(found["llamacpp:tokens_predicted_seconds_total"], 6);
  EXPECT_EQ(found["llamacpp:n_tokens_max"], 35);
  EXPECT_EQ(found[R"(sglang:num_requests_total{model_name="m",engine_type="unified",tp_rank="0",pp_rank="0"})"], 1);
}

TEST_F(MetricsTest, SeveralPromptsOfOneBodyAreRequestsOfTheirOwn) {
  const auto request = watch({.endpoint = "/v1/completions"});
  for (const size_t i : {0, 1, 2}) {
    request->event(i, tokens(0, 1, {.prompt_tokens = 4, .completion_tokens = 1, .first_token_seconds = 1}));
  }
  request->event(1, final_event({.prompt_tokens = 4, .completion_tokens = 1, .first_token_seconds = 1}));
  request->end(Outcome::kAborted, 499);  // the other two end here
  std::map<std::string, double> found = scrape();
  EXPECT_EQ(found[R"(vllm:time_to_first_token_seconds_count{model_name="m",engine="0"})"], 3);
  EXPECT_EQ(found[R"(vllm:request_prompt_tokens_sum{model_name="m",engine="0"})"], 12);
  EXPECT_EQ(found[R"(vllm:request_time_per_output_token_seconds_count{model_name="m",engine="0"})"], 0)
      << "one token has no gap";
  EXPECT_EQ(found[R"(vllm:request_success_total{model_name="m",engine="0",finished_reason="abort"})"], 1);
  EXPECT_EQ(found[R"(sglang:num_aborted_requests_total{model_name="m",engine_type="unified",tp_rank="0",pp_rank="0"})"],
            1);
}

TEST_F(MetricsTest, WhatIsRefusedIsCountedByReason) {
  watch({})->end(Outcome::kRejected, 400);
  watch({})->end(Outcome::kRejected, 429);
  watch({})->end(Outcome::kRejected, 503);
  metrics_.requests().count(Rejection::kQuota);
  watch({}).reset();  // an endpoint that threw
  std::map<std::string, double> found = scrape();
  for (const std::string reason : {"invalid", "queue_full", "unavailable", "quota"}) {
    EXPECT_EQ(found[cat(R"(vllm:admission_rejections_total{model_name="m",engine="0",reason=")", reason, "\"}")], 1);
  }
  EXPECT_EQ(found[R"(vllm:request_success_total{model_name="m",engine="0",finished_reason="error"})"], 1);
  EXPECT_EQ(found[R"(vllm:e2e_request_latency_seconds_count{model_name="m",engine="0"})"], 0);
  EXPECT_EQ(found[R"(vllm:request_params_n_count{model_name="m",engine="0"})"], 1);
}

TEST_F(MetricsTest, FiguresOfTheModel) {
  state_.set_ready(std::make_unique<Model>(Model::load(cat(HR_TEST_DATA, "/models/llama"), {.threads = 1})));
  Request request{.input = std::vector<int32_t>{3, 4, 5, 6, 7}, .sampling = {.temperature = 0, .max_tokens = 6}};
  request.sampling.ignore_eos = true;
  (void)state_.model()->answer(request);
  // The model's thread publishes its figures after the last event.
  const std::string generated = R"(vllm:generation_tokens_total{model_name="m",engine="0"})";
  while (scrape()[generated] < 6) std::this_thread::yield();
  std::map<std::string, double> found = scrape();
  EXPECT_EQ(found[generated], 6);
  EXPECT_EQ(found[R"(vllm:prompt_tokens_total{model_name="m",engine="0"})"], 5);
  EXPECT_EQ(found["llamacpp:prompt_tokens_total"], 5);
  EXPECT_EQ(found["llamacpp:n_decode_total"], 6);
  EXPECT_EQ(found["llamacpp:n_busy_slots_per_decode"], 1);
  EXPECT_EQ(found[R"(vllm:iteration_tokens_total_sum{model_name="m",engine="0"})"], 10);
  EXPECT_EQ(found[R"(vllm:iteration_tokens_total_bucket{model_name="m",engine="0",le="+Inf"})"], 6);
  EXPECT_EQ(found[R"(vllm:prefix_cache_queries_total{model_name="m",engine="0"})"], 5);
  const auto config = found.lower_bound("vllm:cache_config_info");
  EXPECT_EQ(config->first, cat(R"(vllm:cache_config_info{model_name="m",engine="0",block_size="16",num_gpu_blocks=")",
                               state_.model()->figures().kv_blocks, "\"}"));
  EXPECT_EQ(config->second, 1);
  EXPECT_GT(found[R"(headrace_step_seconds_total{model_name="m"})"], 0);
  EXPECT_EQ(found[R"(headrace_phase{model_name="m",phase="ready"})"], 1);
}

TEST_F(MetricsTest, ManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const auto request = watch({});
        for (int k = 0; k < 20; ++k) request->event(0, tokens(0, 1, {}));
        request->end(Outcome::kStop, 200);
      }
    });
  }
  for (int i = 0; i < 5; ++i) (void)metrics_.text(state_, "m");
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(scrape()[R"(vllm:inter_token_latency_seconds_count{model_name="m",engine="0"})"], 4 * 50 * 19);
}

TEST(MetricsTable, NamesAreUniqueAndAliasesHaveOwners) {
  std::set<std::string_view> names;
  for (const MetricRow& row : metric_rows()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
  for (const MetricAlias& alias : metric_aliases()) {
    EXPECT_TRUE(names.contains(alias.own)) << alias.own;
    EXPECT_TRUE(alias.own.starts_with("headrace_")) << alias.own;
  }
  for (const MetricAlias& alias : metric_aliases()) EXPECT_TRUE(names.insert(alias.name).second) << alias.name;
  for (const MetricRow& row : metric_rows()) {
    const bool counts = row.type == prometheus::MetricType::Counter;
    EXPECT_EQ(counts, row.name.ends_with("_total")) << row.name;
  }
}

TEST(MetricsTable, TheDocumentListsIt) {
  std::ifstream in(cat(HR_TEST_DATA, "/../../docs/metrics.md"));
  std::ostringstream text;
  text << in.rdbuf();
  const std::string table = metrics_reference();
  EXPECT_NE(text.str().find(table), std::string::npos) << "put this into docs/metrics.md:\n" << table;
}

}  // namespace
}  // namespace headrace::server
