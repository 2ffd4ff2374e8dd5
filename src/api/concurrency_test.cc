// Many requests at once: each gets the answer that it would get alone, whatever goes on beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/event_queue.h"
#include "base/cat.h"
#include "files/json_file.h"
#include "files/test_folder.h"
#include "headrace/headrace.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;

std::string data(const std::string& path) { return std::string(HR_TEST_DATA) + "/" + path; }

/// A model whose first layer sees everything and whose others see 32 positions: two cache groups.
constexpr std::string_view kMixed = "full and windows";

std::string mixed_model() {
  static const TestFolder folder;
  std::string config = read_text_file(data("models/qwen2/config.json"));
  const auto set = [&](const std::string& from, const std::string& to) {
    const size_t at = config.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    config.replace(at, from.size(), to);
  };
  set(R"("use_sliding_window": false)", R"("use_sliding_window": true)");
  set(R"("max_window_layers": 2)", R"("max_window_layers": 1)");
  folder.write("config.json", config);
  for (const char* file : {"model.safetensors", "tokenizer.json", "tokenizer_config.json"}) {
    std::error_code there_already;
    std::filesystem::create_symlink(std::filesystem::absolute(data("models/qwen2/") + file), folder.path(file),
                                    there_already);
  }
  return folder.path();
}

Model load(LoadOptions options = {}, const std::string& name = "models/llama") {
  if (options.threads == 0) options.threads = 1;
  return Model::load(name == kMixed ? mixed_model() : data(name), options);
}

std::vector<int32_t> prompt_of(int32_t length, int32_t seed) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < length; ++i) tokens.push_back(3 + (i * i * 7 + seed * 131 + i * 3) % 500);
  return tokens;
}

/// A greedy and a drawn request of many lengths, all of the same 20 first tokens.
std::vector<Request> crowd(size_t count) {
  std::vector<Request> requests;
  for (size_t i = 0; i < count; ++i) {
    const auto seed = static_cast<int32_t>(i);
    std::vector<int32_t> prompt = prompt_of(20, 0);
    const std::vector<int32_t> rest = prompt_of(1 + seed * 5 % 37, seed);
    prompt.insert(prompt.end(), rest.begin(), rest.end());
    SamplingParams params{.temperature = i % 2 == 0 ? 0.0f : 0.9f, .seed = i, .max_tokens = 8 + seed % 24};
    params.ignore_eos = true;
    params.logprobs = 1;
    requests.push_back({.input = std::move(prompt), .sampling = params});
  }
  return requests;
}

std::vector<Answer> answer_together(Model& model, const std::vector<Request>& requests) {
  std::vector<std::future<Answer>> pending;
  for (const Request& request : requests) {
    pending.push_back(std::async(std::launch::async, [&model, request] { return model.answer(request); }));
  }
  std::vector<Answer> answers;
  for (auto& one : pending) answers.push_back(one.get());
  return answers;
}

/// Submits all before the first step may begin: `begin` is what that step waits for.
std::vector<Answer> answer_from_one_start(Model& model, const std::vector<Request>& requests,
                                          std::promise<void>& begin) {
  std::deque<EventQueue> events(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) model.submit(requests[i], events[i].sink());
  begin.set_value();
  std::vector<Answer> answers(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    for (bool last = false; !last;) {
      GenerationEvent event = events[i].pop();
      EXPECT_FALSE(event.error) << event.error->message();
      last = event.last;
      if (!event.error) add_event(std::move(event), answers[i]);
    }
  }
  return answers;
}

void expect_same(const std::vector<Answer>& got, const std::vector<Answer>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].choices.size(), want[i].choices.size());
    for (size_t c = 0; c < got[i].choices.size(); ++c) {
      EXPECT_EQ(got[i].choices[c].tokens, want[i].choices[c].tokens) << what << ", request " << i << ", choice " << c;
      EXPECT_EQ(got[i].choices[c].text, want[i].choices[c].text) << what << ", request " << i;
    }
  }
}

/// The figures once no request runs: they are published after the last events.
ModelFigures settled_figures(const Model& model) {
  for (int i = 0; i < 5000 && model.figures().running_requests > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return model.figures();
}

class Crowd : public testing::TestWithParam<const char*> {};

TEST_P(Crowd, AnswersAreThoseThatEachWouldGetAlone) {
  std::vector<Request> requests = crowd(14);
  requests[3].sampling.n = 3;
  requests[6].sampling.n = 2;
  std::vector<Answer> alone;
  {
    Model model = load({.prefix_caching = false}, GetParam());
    for (const Request& request : requests) alone.push_back(model.answer(request));
  }
  Model together = load({.threads = 2}, GetParam());
  expect_same(answer_together(together, requests), alone, "together");
  expect_same(answer_together(together, requests), alone, "with a warm cache");
  EXPECT_GT(together.figures().cached_tokens, 0);

  Model narrow = load({.max_num_seqs = 3, .max_num_batched_tokens = 16}, GetParam());
  expect_same(answer_together(narrow, requests), alone, "three at once, in steps of 16 tokens");
}

TEST_P(Crowd, PreemptedOnesAreComputedAgainAndLoseNothing) {
  std::vector<Request> requests = crowd(8);
  // Nobody can tell how long they get: as long as a sequence may be.
  for (Request& request : requests) request.sampling.max_tokens = 0;
  requests[5].sampling.n = 2;
  std::vector<Answer> alone;
  Model ample = load({.max_model_len = 96}, GetParam());
  for (const Request& request : requests) alone.push_back(ample.answer(request));

  constexpr int64_t kProbeBytes = 1 << 20;
  const int64_t token_bytes = kProbeBytes / load({.kv_cache_memory_bytes = kProbeBytes}, GetParam()).kv_cache_tokens();
  std::promise<void> begin;
  Model small = load({.max_model_len = 96,
                      .kv_cache_memory_bytes = 224 * token_bytes,
                      .max_num_batched_tokens = 16,
                      .fault_injection =
                          [begun = begin.get_future().share()](int64_t) {
                            begun.wait();
                            return false;
                          }},
                     GetParam());
  expect_same(answer_from_one_start(small, requests, begin), alone,
              cat("in a cache of ", small.kv_cache_tokens(), " tokens"));
  const bool has_windows = std::string_view(GetParam()) == "models/mistral";  // sequences do not outgrow their share
  if (!has_windows) {
    EXPECT_GT(small.figures().preemptions, 0);
  }
  EXPECT_GT(small.figures().prefix_hit_tokens, 0);
  EXPECT_EQ(settled_figures(small).kv_cache_used, 0) << "all blocks are back";
}

INSTANTIATE_TEST_SUITE_P(Models, Crowd,
                         testing::Values("models/llama", "models/mistral", "gguf/qwen2-Q8_0.gguf", kMixed.data()),
                         [](const auto& model) {
                           std::string name = model.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

/// Events until the last one.
GenerationEvent last_of(EventQueue& events) {
  for (;;) {
    GenerationEvent event = events.pop();
    if (event.last) return event;
  }
}

TEST(Requests, ACancelledOneGivesItsBlocksBack) {
  Model model = load();
  SamplingParams params{.temperature = 0, .max_tokens = 10000};
  params.max_tokens = 0;
  params.ignore_eos = true;
  EventQueue events;
  const RequestId id = model.submit({.input = prompt_of(10, 1), .sampling = params}, events.sink());
  (void)events.pop();
  model.cancel(id);
  EXPECT_EQ(last_of(events).finish_reason, FinishReason::kCancelled);
  const ModelFigures figures = settled_figures(model);
  EXPECT_EQ(figures.cancelled, 1);
  EXPECT_EQ(figures.running_requests, 0);
  EXPECT_EQ(figures.kv_cache_used, 0);
}

TEST(Requests, AFailedStepEndsThoseThatHadBegunAndNoOthers) {
  Model model = load({.max_num_seqs = 1, .fault_injection = [](int64_t step) { return step == 3; }});
  SamplingParams params{.temperature = 0, .max_tokens = 20};
  params.ignore_eos = true;
  EventQueue begun;
  EventQueue waits;
  (void)model.submit({.input = prompt_of(10, 1), .sampling = params}, begun.sink());
  (void)model.submit({.input = prompt_of(10, 2), .sampling = params}, waits.sink());
  const GenerationEvent failed = last_of(begun);
  ASSERT_TRUE(failed.error);
  EXPECT_EQ(failed.error->code(), ErrorCode::kInternal);
  EXPECT_THAT(failed.error->message(), HasSubstr("step 3"));
  const GenerationEvent finished = last_of(waits);
  EXPECT_FALSE(finished.error);
  EXPECT_EQ(finished.usage.completion_tokens, 20);
  const ModelFigures figures = settled_figures(model);
  EXPECT_EQ(figures.failed_steps, 1);
  EXPECT_EQ(figures.failed, 1);
  EXPECT_EQ(figures.finished, 1);
  EXPECT_EQ(figures.kv_used_blocks, 0);
}

TEST(Requests, FiguresTellOfQueueCacheAndHangingSteps) {
  std::atomic<bool> hangs = false;
  std::atomic<bool> both_sent = false;
  Model model = load({.max_num_seqs = 1, .fault_injection = [&](int64_t step) {
                        while (!both_sent) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                        if (step == 4) hangs = true;
                        while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                        return false;
                      }});
  EXPECT_EQ(model.figures().seconds_without_step, 0);
  EXPECT_EQ(model.figures().backlog_seconds, 0);
  SamplingParams params{.temperature = 0, .max_tokens = 5};
  params.ignore_eos = true;
  EventQueue first;
  EventQueue second;
  (void)model.submit({.input = prompt_of(40, 1), .sampling = params}, first.sink());
  (void)model.submit({.input = prompt_of(40, 1), .sampling = params}, second.sink());
  both_sent = true;
  while (!hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const ModelFigures early = model.figures();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const ModelFigures late = model.figures();
  EXPECT_GE(late.seconds_without_step, early.seconds_without_step + 0.02);
  EXPECT_EQ(late.steps, 3);
  EXPECT_EQ(late.running_sequences, 1);
  EXPECT_EQ(late.waiting_sequences, 1);
  EXPECT_GT(late.backlog_seconds, 0);
  EXPECT_EQ(late.step_tokens, 42) << "the prompt, and two tokens";
  EXPECT_EQ(late.last_step_tokens, 1);
  EXPECT_EQ(late.kv_block_tokens, 16);
  EXPECT_GE(late.kv_used_blocks, 3);
  EXPECT_LE(late.kv_used_blocks, late.kv_blocks);
  EXPECT_DOUBLE_EQ(late.kv_fragmentation, 1 - 42.0 / static_cast<double>(late.kv_used_blocks * 16));
  hangs = false;
  (void)last_of(first);
  EXPECT_EQ(last_of(second).usage.cached_tokens, 32);
  const ModelFigures end = settled_figures(model);
  EXPECT_EQ(end.prefix_query_tokens, 80);
  EXPECT_EQ(end.prefix_hit_tokens, 32);
  EXPECT_EQ(end.seconds_without_step, 0);
  EXPECT_EQ(end.backlog_seconds, 0);
}

TEST(Requests, TooManyWaitingAreRefusedAtOnce) {
  Model model = load({.max_num_seqs = 1, .max_queued_requests = 1});
  SamplingParams params{.temperature = 0};
  params.ignore_eos = true;
  std::vector<std::unique_ptr<EventQueue>> queues;
  std::vector<RequestId> accepted;
  int refused = 0;
  for (int i = 0; i < 8; ++i) {
    queues.push_back(std::make_unique<EventQueue>());
    try {
      accepted.push_back(model.submit({.input = prompt_of(10, i), .sampling = params}, queues.back()->sink()));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.message(), HasSubstr("queue is full"));
      queues.pop_back();
      ++refused;
    }
  }
  EXPECT_GE(refused, 6) << "one runs at most, one waits";
  for (const RequestId id : accepted) model.cancel(id);
  for (const auto& queue : queues) (void)last_of(*queue);
}

TEST(Requests, AnOverlongOneFailsAlone) {
  Model model = load({.max_model_len = 64});
  auto good = std::async(std::launch::async, [&] {
    return model.answer({.input = prompt_of(30, 1), .sampling = {.temperature = 0, .max_tokens = 20}});
  });
  try {
    (void)model.answer({.input = prompt_of(64, 2)});
    ADD_FAILURE() << "accepted";
  } catch (const ContextLengthError& error) {
    EXPECT_EQ(error.prompt_tokens(), 64);
    EXPECT_EQ(error.max_model_len(), 64);
  }
  EXPECT_FALSE(good.get().choices[0].tokens.empty());
}

TEST(Requests, DeadlinesEndThem) {
  Model model = load();
  SamplingParams params{.temperature = 0};
  params.ignore_eos = true;
  Request request{.input = prompt_of(10, 1), .sampling = params};
  request.timeout_seconds = 1e-6;
  try {
    (void)model.answer(request);
    ADD_FAILURE() << "finished";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_THAT(error.message(), HasSubstr("time limit"));
  }
}

TEST(Requests, ScoresOfAPromptAreThoseItHadAsAnAnswer) {
  Model model = load();
  SamplingParams params{.temperature = 0.8f, .seed = 5, .max_tokens = 12};
  params.ignore_eos = true;
  params.logprobs = 2;
  const std::vector<int32_t> prompt = prompt_of(9, 4);
  const Answer answer = model.answer({.input = prompt, .sampling = params});
  ASSERT_EQ(answer.choices[0].logprobs.size(), 12u);

  std::vector<int32_t> whole = prompt;
  whole.insert(whole.end(), answer.choices[0].tokens.begin(), answer.choices[0].tokens.end());
  SamplingParams score;
  score.prompt_logprobs = 2;
  const Answer scored = model.answer({.input = whole, .sampling = score, .score_only = true});
  EXPECT_TRUE(scored.choices[0].tokens.empty());
  ASSERT_EQ(scored.prompt_logprobs.size(), whole.size() - 1);
  for (size_t i = 0; i < 12; ++i) {
    const TokenLogprobs& now = scored.prompt_logprobs[prompt.size() - 1 + i];
    EXPECT_EQ(now.chosen.token, answer.choices[0].tokens[i]);
    EXPECT_EQ(now.chosen.logprob, answer.choices[0].logprobs[i].chosen.logprob) << "token " << i;
  }
}

TEST(Requests, TheBestOfManyAreGiven) {
  Model model = load();
  SamplingParams params{.temperature = 1, .seed = 3, .max_tokens = 6};
  params.ignore_eos = true;
  params.logprobs = 0;
  params.n = 5;
  const Request request{.input = prompt_of(9, 4), .sampling = params};
  const Answer all = model.answer(request);
  Request best = request;
  best.sampling.n = 2;
  best.sampling.best_of = 5;
  const Answer picked = model.answer(best);
  std::vector<std::pair<double, std::vector<int32_t>>> scores;
  for (const Choice& choice : all.choices) {
    double sum = 0;
    for (const TokenLogprobs& token : choice.logprobs) sum += static_cast<double>(token.chosen.logprob);
    scores.emplace_back(-sum, choice.tokens);
  }
  std::stable_sort(scores.begin(), scores.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  ASSERT_EQ(picked.choices.size(), 2u);
  EXPECT_EQ(picked.choices[0].tokens, scores[0].second);
  EXPECT_EQ(picked.choices[1].tokens, scores[1].second);
  EXPECT_EQ(picked.usage.completion_tokens, 30) << "all that was computed";
}

TEST(Requests, NothingOfAStopTextIsTold) {
  Model model = load();
  SamplingParams params{.temperature = 0, .max_tokens = 32};
  params.ignore_eos = true;
  params.logprobs = 0;
  const Request request{.input = prompt_of(9, 4), .sampling = params};
  const std::string whole = model.answer(request).choices[0].text;
  ASSERT_GT(whole.size(), 12u);
  Request stopped = request;
  stopped.sampling.stop = {whole.substr(whole.size() / 2, 4)};
  const Answer answer = model.answer(stopped);
  const Choice& choice = answer.choices[0];
  EXPECT_EQ(choice.text, whole.substr(0, whole.find(stopped.sampling.stop[0])));
  EXPECT_EQ(choice.stop_cause.text, stopped.sampling.stop[0]);
  EXPECT_EQ(choice.logprobs.size(), choice.tokens.size());
  EXPECT_LT(choice.tokens.size(), static_cast<size_t>(answer.usage.completion_tokens));
  stopped.sampling.include_stop_str_in_output = true;
  EXPECT_EQ(model.answer(stopped).choices[0].text, choice.text + stopped.sampling.stop[0]);
}

TEST(Requests, SaltsKeepCachesApart) {
  Model model = load();
  Request request{.input = prompt_of(60, 7), .sampling = {.temperature = 0, .max_tokens = 1}};
  request.cache_salt = "a";
  EXPECT_EQ(model.answer(request).usage.cached_tokens, 0);
  EXPECT_EQ(model.answer(request).usage.cached_tokens, 48);
  request.cache_salt = "b";
  EXPECT_EQ(model.answer(request).usage.cached_tokens, 0);
}

TEST(Requests, AnswersFitTheirSchema) {
  Model model = load();
  std::vector<Request> requests;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SamplingParams params{.temperature = 1, .seed = seed, .max_tokens = 200};
    params.structured_output = JsonSchemaOutput{
        R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]}},"required":["a","b"],)"
        R"("additionalProperties":false})"};
    requests.push_back({.input = prompt_of(12, static_cast<int32_t>(seed)), .sampling = params});
  }
  const std::vector<Answer> answers = answer_together(model, requests);
  int whole = 0;
  for (const Answer& answer : answers) {
    if (answer.choices[0].reason != FinishReason::kStop) continue;
    const auto json = nlohmann::json::parse(answer.choices[0].text);
    EXPECT_TRUE(json.at("a").is_number_integer()) << answer.choices[0].text;
    EXPECT_TRUE(json.at("b") == "x" || json.at("b") == "y");
    ++whole;
  }
  EXPECT_GT(whole, 0);
  requests[0].sampling.structured_output = JsonSchemaOutput{R"({"type":"colour"})"};
  EXPECT_THROW((void)model.answer(requests[0]), Error);
}

}  // namespace
}  // namespace headrace
