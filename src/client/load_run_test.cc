#include "client/load_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "client/scripted_server.h"
#include "client/serve_measurement.h"
#include "files/test_folder.h"

namespace headrace::client {
namespace {

using testing::HasSubstr;

OpenAiTarget target_at(const ScriptedServer& server) {
  OpenAiTarget target;
  target.base_url = server.url();
  target.model = std::string(1, 'm');
  target.timeout_seconds = 20;
  return target;
}

std::vector<BenchPrompt> some_prompts(size_t count) {
  std::vector<BenchPrompt> prompts(count, BenchPrompt{.text = "hi", .prompt_tokens = 5, .max_tokens = 3, .arrival = 0});
  return prompts;
}

LoadRun run_all(const OpenAiTarget& target, size_t count, int64_t concurrency = 0) {
  HttpClient client;
  const std::vector<BenchPrompt> prompts = some_prompts(count);
  const std::vector<double> at_once(count, 0.0);
  LoadRunOptions options;
  options.arrivals = at_once;
  options.max_concurrency = concurrency;
  return run_load(client, target, prompts, options);
}

RequestRecord only_record(const ScriptedAnswer& answer) {
  const ScriptedServer server([&](const auto&) { return answer; });
  LoadRun run = run_all(target_at(server), 1);
  return run.records.at(0);
}

TEST(LoadRun, RecordsWhatArrivesWhenItArrives) {
  const RequestRecord r = only_record(stream_answer({"a", "b", "c"}, 30));
  EXPECT_EQ(r.status, RequestStatus::kCompleted) << r.error;
  EXPECT_EQ(r.text, "abc");
  EXPECT_EQ(r.finish_reason, "length");
  EXPECT_EQ(r.usage_prompt_tokens, 5);
  EXPECT_EQ(r.usage_completion_tokens, 3);
  EXPECT_TRUE(r.done_marker);
  ASSERT_EQ(r.token_times.size(), 3u);
  EXPECT_EQ(r.first_chunk, r.token_times[0]);
  EXPECT_EQ(r.last_chunk, r.token_times[2]);
  // The server sleeps at least 30 ms before each, and pauses are made before their bytes are sent.
  EXPECT_GE(r.token_times[0] - r.sent, 0.030);
  EXPECT_GE(r.token_times[2] - r.token_times[0], 0.055) << "two pauses, less what the first event was delayed";
  EXPECT_LE(r.token_times[2], r.end);
}

TEST(LoadRun, SendsWhatIsAskedFor) {
  const ScriptedServer server([](const auto&) { return stream_answer({"a"}, 0); });
  OpenAiTarget target = target_at(server);
  target.endpoint = "/v1/chat/completions";
  target.ignore_eos = true;
  target.temperature = 0;
  target.extra_body = R"({"min_p": 0.5})";
  HttpClient client;
  const std::vector<double> arrivals{0};
  LoadRunOptions options;
  options.arrivals = arrivals;
  options.cache_salt = "s1";
  (void)run_load(client, target, some_prompts(1), options);
  ASSERT_EQ(server.requests().size(), 1u);
  EXPECT_EQ(server.requests()[0].path, "/v1/chat/completions");
  EXPECT_EQ(
      server.requests()[0].body,
      R"({"model":"m","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":3,"temperature":0.0,)"
      R"("ignore_eos":true,"stream":true,"stream_options":{"include_usage":true},"cache_salt":"s1","min_p":0.5})");
}

TEST(LoadRun, TellsTheEndsOfStreamsApart) {
  const auto chunked = [](std::string_view events) {
    return ScriptedAnswer{.parts = {{cat(kStreamHead, http_chunk(events), kStreamEnd)}}, .close = false};
  };
  constexpr std::string_view kToken = "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n";

  const RequestRecord no_reason = only_record(chunked(kToken));
  EXPECT_EQ(no_reason.status, RequestStatus::kIncomplete);
  EXPECT_THAT(no_reason.error, HasSubstr("without a reason"));

  const RequestRecord cut = only_record({.parts = {{cat(kStreamHead, http_chunk(kToken))}}, .close = true});
  EXPECT_EQ(cut.status, RequestStatus::kIncomplete);
  EXPECT_EQ(cut.token_times.size(), 1u);
  EXPECT_NE(cut.error, "");

  EXPECT_EQ(only_record({.parts = {}, .close = true}).status, RequestStatus::kFailed) << "closed without a word";
  EXPECT_EQ(only_record({.parts = {{std::string(kStreamHead)}}, .close = true}).status, RequestStatus::kFailed);
  EXPECT_EQ(only_record({.parts = {{"nonsense\r\n\r\n"}}, .close = true}).status, RequestStatus::kFailed);

  const RequestRecord error =
      only_record(chunked(cat(kToken, "data: {\"error\":{\"message\":\"out of blocks\"}}\n\n")));
  EXPECT_EQ(error.status, RequestStatus::kFailed);
  EXPECT_EQ(error.error, "out of blocks");

  const RequestRecord named = only_record(chunked("event: error\ndata: {\"detail\":\"boom\"}\n\n"));
  EXPECT_EQ(named.error, "{\"detail\":\"boom\"}");

  EXPECT_THAT(only_record(chunked("data: {broken\n\n")).error, HasSubstr("not JSON: {broken"));

  const RequestRecord odd = only_record(
      chunked(": hello\r\n\r\ndata: {\"choices\":[{\"text\":\"a\",\r\ndata: \"finish_reason\":\"stop\"}]}\r\n\r\n"));
  EXPECT_EQ(odd.status, RequestStatus::kCompleted) << odd.error;
  EXPECT_EQ(odd.text, "a");
  EXPECT_FALSE(odd.done_marker);

  const RequestRecord refused = only_record(whole_answer(429, R"({"error":{"message":"slow down"}})"));
  EXPECT_EQ(refused.status, RequestStatus::kFailed);
  EXPECT_EQ(refused.http_status, 429);
  EXPECT_EQ(refused.error, "status 429: slow down");

  const RequestRecord whole = only_record(
      whole_answer(200, R"({"choices":[{"text":"all","finish_reason":"stop"}],"usage":{"completion_tokens":2}})"));
  EXPECT_EQ(whole.status, RequestStatus::kCompleted) << "a server that does not stream";
  EXPECT_EQ(whole.text, "all");
  EXPECT_EQ(output_tokens(whole), 2);
}

TEST(LoadRun, RolesAndReasonsAreNoTokens) {
  const std::string events =
      "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
  const RequestRecord r = only_record({.parts = {{cat(kStreamHead, http_chunk(events), kStreamEnd)}}, .close = false});
  EXPECT_EQ(r.token_times.size(), 2u) << "one held back, one with text";
  EXPECT_EQ(r.text, "x");
  EXPECT_GT(r.first_text, 0);
}

TEST(LoadRun, ASlowServerEndsInATimeout) {
  const ScriptedServer server([](const auto&) {
    ScriptedAnswer answer = stream_answer({"a", "b"}, 0);
    answer.parts[2].pause_ms = 30000;
    return answer;
  });
  OpenAiTarget target = target_at(server);
  target.timeout_seconds = 0.5;
  const RequestRecord r = run_all(target, 1).records.at(0);
  EXPECT_EQ(r.status, RequestStatus::kIncomplete);
  EXPECT_EQ(r.token_times.size(), 1u);
  EXPECT_LT(r.end, 20) << "long before the second token would have come";
}

TEST(LoadRun, NobodyListening) {
  std::string url;
  {
    const ScriptedServer server([](const auto&) { return ScriptedAnswer{}; });
    url = server.url();
  }
  OpenAiTarget target;
  target.base_url = url;
  const LoadRun run = run_all(target, 2);
  EXPECT_EQ(run.records[0].status, RequestStatus::kFailed);
  EXPECT_EQ(run.records[0].http_status, 0);
  EXPECT_NE(run.records[0].error, "");
}

TEST(LoadRun, ClosedLoopKeepsItsClientsAndTheirConnections) {
  const ScriptedServer server([](const auto&) { return stream_answer({"a", "b"}, 2); });
  const LoadRun run = run_all(target_at(server), 30, 3);
  EXPECT_EQ(serve_figures(run, {}).completed, 30);
  EXPECT_EQ(serve_figures(run, {}).most_concurrent, 3);
  EXPECT_EQ(server.num_connections(), 3);
  for (size_t i = 3; i < run.records.size(); ++i) {
    EXPECT_GT(run.records[i].due, 0) << "it had to wait for a client";
    EXPECT_GE(run.records[i].sent, run.records[i].due);
  }
}

TEST(LoadRun, OpenLoopSendsAtItsTimes) {
  const ScriptedServer server([](const auto&) { return stream_answer({"a"}, 800); });
  HttpClient client;
  const std::vector<double> arrivals{0, 0.05, 0.1};
  LoadRunOptions options;
  options.arrivals = arrivals;
  const LoadRun run = run_load(client, target_at(server), some_prompts(3), options);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_GE(run.records[i].sent, arrivals[i]);
    EXPECT_EQ(run.records[i].due, arrivals[i]);
  }
  EXPECT_LT(run.records[2].sent, run.records[0].end) << "it waits for no answer";
}

TEST(LoadRun, StoppedItGivesUpWhatIsOut) {
  const ScriptedServer server([](const auto& request) {
    return request.number == 0 ? stream_answer({"a"}, 0) : stream_answer({"a", "b"}, 30000);
  });
  HttpClient client;
  const std::vector<double> arrivals{0, 0, 0, 0};
  size_t ended = 0;
  LoadRunOptions options;
  options.arrivals = arrivals;
  options.max_concurrency = 1;
  options.stop = [&] { return ended == 1 && server.requests().size() == 2; };
  options.progress = [&](size_t count) { ended = count; };
  const LoadRun run = run_load(client, target_at(server), some_prompts(4), options);
  EXPECT_TRUE(run.stopped);
  EXPECT_EQ(run.not_sent, 2);
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_EQ(run.records[0].status, RequestStatus::kCompleted);
  EXPECT_EQ(run.records[1].status, RequestStatus::kCancelled);
  EXPECT_LT(run.duration, 20);
}

/// A server that knows /v1/models, counts a word as a token and one more for the beginning, and answers with one token.
ScriptedAnswer answer_like_a_server(const ScriptedServer::Request& request, bool knows_salt, bool knows_tokenize) {
  if (request.path == "/v1/models") return whole_answer(200, R"({"data":[{"id":"served"}]})");
  if (request.path == "/tokenize" && !knows_tokenize) return whole_answer(404, "{}");
  const auto words = 1 + std::ranges::count(request.body.substr(request.body.find("\"prompt\"")), ' ') + 1;
  if (request.path == "/tokenize") return whole_answer(200, cat(R"({"count":)", words, "}"));
  if (!knows_salt && request.body.find("cache_salt") != std::string::npos) {
    return whole_answer(400, R"({"error":{"message":"cache_salt: unknown"}})");
  }
  return stream_answer({"a"}, 0, words);
}

ServeBenchSpec small_bench(const ScriptedServer& server) {
  ServeBenchSpec spec;
  spec.target.base_url = server.url();
  spec.data.num_prompts = 6;
  spec.data.random_input_len = 20;
  spec.data.random_output_len = 1;
  return spec;
}

std::vector<std::string> completions(const ScriptedServer& server) {
  std::vector<std::string> bodies;
  for (const auto& request : server.requests()) {
    if (request.path == "/v1/completions") bodies.push_back(request.body);
  }
  return bodies;
}

std::string salt_of(const std::string& body) {
  const size_t at = body.find("\"cache_salt\":");
  return at == std::string::npos ? "" : body.substr(at, 31);
}

TEST(ServeBench, RunsColdByTheSalt) {
  const ScriptedServer server([](const auto& r) { return answer_like_a_server(r, true, true); });
  ServeBenchSpec spec = small_bench(server);
  spec.concurrencies = {1, 2};
  const ServeBenchResult result = run_serve_bench(spec);
  EXPECT_EQ(result.model, "served");
  EXPECT_EQ(result.cache, CacheState::kColdSalt);
  EXPECT_EQ(result.token_source, "the server's /tokenize");
  ASSERT_EQ(result.runs.size(), 2u);
  for (const ServeRun& run : result.runs) {
    EXPECT_EQ(run.figures.completed, 6);
    EXPECT_EQ(run.figures.input_tokens, 6 * 20) << "lengths are exact";
    for (const std::string& warning : run.figures.warnings) {
      EXPECT_THAT(warning, testing::AnyOf(HasSubstr("late"), HasSubstr("of a processor"))) << "a busy machine";
    }
  }
  const std::vector<std::string> bodies = completions(server);
  ASSERT_EQ(bodies.size(), 1u + 2 + 6 + 6) << "a first one, two to warm up, two runs";
  std::set<std::string> salts;
  for (const std::string& body : bodies) salts.insert(salt_of(body));
  EXPECT_EQ(salts.size(), 4u) << "one each, the same within a run";
  EXPECT_FALSE(salts.contains(""));
}

TEST(ServeBench, RunsColdByOtherWordsWhereTheSaltIsRefused) {
  const ScriptedServer server([](const auto& r) { return answer_like_a_server(r, false, false); });
  ServeBenchSpec spec = small_bench(server);
  spec.rates = {kUnlimited, 1000};
  const ServeBenchResult result = run_serve_bench(spec);
  EXPECT_EQ(result.cache, CacheState::kColdText);
  EXPECT_EQ(result.token_source, "an estimate from the usage of two requests");
  EXPECT_EQ(result.runs.at(1).figures.input_tokens, 6 * 20) << "a straight line is exact here";
  const std::vector<std::string> bodies = completions(server);
  const auto beginning = [](const std::string& body) { return body.substr(body.find("\"prompt\""), 40); };
  EXPECT_EQ(beginning(bodies.end()[-1]), beginning(bodies.end()[-6]));
  EXPECT_NE(beginning(bodies.end()[-1]), beginning(bodies.end()[-7])) << "the run before";
}

TEST(ServeBench, WarmSendsNoSalt) {
  const ScriptedServer server([](const auto& r) { return answer_like_a_server(r, true, true); });
  ServeBenchSpec spec = small_bench(server);
  spec.cold_cache = false;
  EXPECT_EQ(run_serve_bench(spec).cache, CacheState::kWarm);
  for (const std::string& body : completions(server)) EXPECT_EQ(salt_of(body), "");
}

TEST(ServeBench, FindsTheHighestRate) {
  const ScriptedServer server([](const auto& r) { return answer_like_a_server(r, true, true); });
  ServeBenchSpec spec = small_bench(server);
  spec.search_rate = true;
  spec.search = {.first = 500, .most_runs = 3};
  spec.max_mean_ttft = 100;
  const ServeBenchResult within = run_serve_bench(spec);
  EXPECT_EQ(within.best_rate, 2000);
  spec.max_mean_ttft = 0;
  EXPECT_FALSE(run_serve_bench(spec).best_rate);
}

TEST(ServeBench, SaysWhyNothingCanBeMeasured) {
  const ScriptedServer server([](const auto& r) {
    return r.path == "/v1/models" ? whole_answer(200, R"({"data":[]})")
                                  : whole_answer(401, R"({"error":{"message":"no key"}})");
  });
  ServeBenchSpec spec = small_bench(server);
  EXPECT_THAT(error_of([&] { (void)run_serve_bench(spec); }), HasSubstr("no model is listed"));
  spec.target.model = std::string(1, 'm');
  EXPECT_THAT(error_of([&] { (void)run_serve_bench(spec); }), HasSubstr("status 401: no key"));
  spec.target.base_url = "http://127.0.0.1:1";
  spec.target.model = "";
  EXPECT_THAT(error_of([&] { (void)run_serve_bench(spec); }), HasSubstr("is a server running there?"));
}

}  // namespace
}  // namespace headrace::client
