// Streams: the exact text of chunks, and that no text is lost or broken.
#include "openai/stream_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "openai/json_text.h"
#include "openai/pending_answer.h"

namespace headrace::openai {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kHead =
    R"({"id":"x-1","object":"OBJECT","created":7,"model":"m","system_fingerprint":"fp","choices":[)";

AnswerPlan plan(bool is_chat, size_t prompts = 1, int32_t n = 1) {
  AnswerPlan plan{.head = {.id = "x-1", .model = "m", .created = 7, .fingerprint = "fp"},
                  .common = {},
                  .names = {.bytes = [](int32_t token) { return std::string(1, static_cast<char>('a' + token)); }},
                  .is_chat = is_chat};
  plan.common.sampling.n = n;
  plan.echoed.resize(prompts);
  return plan;
}

/// The data of each event.
std::vector<std::string> events_of(const std::string& stream) {
  std::vector<std::string> events;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    EXPECT_NE(end, std::string::npos) << "an event without an end";
    if (end == std::string::npos) break;
    EXPECT_EQ(stream.compare(at, 6, "data: "), 0);
    events.push_back(stream.substr(at + 6, end - at - 6));
    EXPECT_EQ(events.back().find('\n'), std::string::npos);
    at = end + 2;
  }
  return events;
}

std::vector<std::string> stream(StreamWriter& writer, std::vector<std::pair<size_t, GenerationEvent>> events) {
  std::string out;
  for (auto& [request, event] : events) writer.add(request, std::move(event), out);
  return events_of(out);
}

std::vector<std::string> stream(const AnswerPlan& plan, std::vector<std::pair<size_t, GenerationEvent>> events) {
  StreamWriter writer(plan);
  return stream(writer, std::move(events));
}

std::string chunk(std::string_view object, std::string_view choice, std::string_view rest = "") {
  std::string head(kHead);
  head.replace(head.find("OBJECT"), 6, object);
  return head + std::string(choice) + "]" + std::string(rest) + "}";
}

std::string chat_chunk(std::string_view choice, std::string_view rest = "") {
  return chunk("chat.completion.chunk", choice, rest);
}

std::string text_chunk(std::string_view choice, std::string_view rest = "") {
  return chunk("text_completion", choice, rest);
}

GenerationEvent token(std::string text, int32_t id, int32_t choice = 0) {
  return {.choice = choice, .text = std::move(text), .tokens = {id}};
}

GenerationEvent end(FinishReason reason, bool last = true, int32_t choice = 0, std::string text = {}) {
  return {.choice = choice, .text = std::move(text), .finish_reason = reason, .last = last};
}

std::string role(int index) {
  return R"({"index":)" + std::to_string(index) +
         R"(,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})";
}

TEST(ChatStream, RoleTextReasonAndDone) {
  EXPECT_THAT(
      stream(plan(true),
             {{0, token("Hi", 1)}, {0, token("", 2)}, {0, end(FinishReason::kLength, true, 0, " \"x\"\n")}}),
      ElementsAre(chat_chunk(role(0)),
                  chat_chunk(R"({"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null})"),
                  chat_chunk(R"({"index":0,"delta":{"content":" \"x\"\n"},"logprobs":null,"finish_reason":null})"),
                  chat_chunk(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"length","stop_reason":null})"),
                  "[DONE]"));
}

TEST(ChatStream, RoleComesWithTheFirstTokenEvenIfItsTextIsHeldBack) {
  StreamWriter writer(plan(true));
  std::string out;
  writer.add(0, {.choice = 0}, out);
  EXPECT_THAT(events_of(out), ElementsAre(chat_chunk(role(0))));
}

TEST(ChatStream, ChoicesAreInterleavedByIndex) {
  const std::vector<std::string> events = stream(plan(true, 1, 2), {{0, token("a", 1, 0)},
                                                                    {0, token("b", 1, 1)},
                                                                    {0, end(FinishReason::kStop, false, 1)},
                                                                    {0, token("c", 1, 0)},
                                                                    {0, end(FinishReason::kStop, true, 0)}});
  std::map<int, std::string> texts;
  std::map<int, int> reasons;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const Json choice = Json::parse(events[i])["choices"][0];
    texts[choice["index"]] += choice["delta"].value("content", "");
    reasons[choice["index"]] += choice["finish_reason"].is_null() ? 0 : 1;
  }
  EXPECT_EQ(texts, (std::map<int, std::string>{{0, "ac"}, {1, "b"}}));
  EXPECT_EQ(reasons, (std::map<int, int>{{0, 1}, {1, 1}}));
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(std::ranges::count(events, "[DONE]"), 1);
}

TEST(ChatStream, UsageIsNullUntilTheEnd) {
  AnswerPlan asked = plan(true);
  asked.common.include_usage = true;
  GenerationEvent last = end(FinishReason::kStop);
  last.usage = {.prompt_tokens = 5, .cached_tokens = 2, .completion_tokens = 3};
  EXPECT_THAT(
      stream(asked, {{0, token("a", 1)}, {0, last}}),
      ElementsAre(
          chat_chunk(role(0), R"(,"usage":null)"),
          chat_chunk(R"({"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null})", R"(,"usage":null)"),
          chat_chunk(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":null})",
                     R"(,"usage":null)"),
          chat_chunk("", R"(,"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,)"
                         R"("prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":)"
                         R"({"reasoning_tokens":0,"accepted_prediction_tokens":0,)"
                         R"("rejected_prediction_tokens":0}})"),
          "[DONE]"));
}

TEST(ChatStream, RunningUsageIsTheSumOfAllPrompts) {
  AnswerPlan asked = plan(false, 2);
  asked.common.continuous_usage = asked.common.include_usage = true;
  GenerationEvent first = token("a", 1), second = token("b", 2);
  first.usage = {.prompt_tokens = 5, .completion_tokens = 1};
  second.usage = {.prompt_tokens = 7, .completion_tokens = 2};
  const std::vector<std::string> events = stream(asked, {{0, first}, {1, second}});
  EXPECT_EQ(Json::parse(events[0])["usage"]["completion_tokens"], 1);
  EXPECT_EQ(Json::parse(events[1])["usage"]["completion_tokens"], 3);
  EXPECT_EQ(Json::parse(events[1])["usage"]["prompt_tokens"], 12);
}

TEST(ChatStream, LogprobsStandWithTheirTokens) {
  AnswerPlan asked = plan(true);
  asked.common.sampling.logprobs = 0;
  asked.common.return_token_ids = true;
  asked.prompt_tokens = {{4, 5}};
  GenerationEvent held = token("", 2), shown = token("ab", 0);
  shown.tokens = {0, 1};
  held.tokens.clear();
  shown.logprobs = {{.chosen = {.token = 0, .logprob = -1}}, {.chosen = {.token = 1, .logprob = -2}}};
  const std::vector<std::string> events = stream(asked, {{0, held}, {0, shown}, {0, end(FinishReason::kStop)}});
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(Json::parse(events[0])["prompt_token_ids"], Json::parse("[4,5]"));
  const Json choice = Json::parse(events[1])["choices"][0];
  EXPECT_EQ(choice["delta"]["content"], "ab");
  EXPECT_EQ(choice["logprobs"]["content"][1]["token"], "b");
  EXPECT_EQ(choice["token_ids"], Json::parse("[0,1]"));
}

/// Everything in brackets is reasoning, "!" is a call of f({}).
class ToyParser final : public MessageParser {
 public:
  MessageDelta feed(std::string_view text) override {
    MessageDelta delta;
    for (const char c : text) {
      if (c == '[' || c == ']') {
        inside_ = c == '[';
      } else if (c == '!') {
        called_ = true;
        delta.tool_calls.push_back({.index = 0, .id = "call_1", .name = "f"});
        delta.tool_calls.push_back({.index = 0, .arguments = "{\"a\":1}"});
      } else {
        (inside_ ? delta.reasoning : delta.content) += c;
      }
    }
    return delta;
  }
  MessageDelta finish() override { return {.content = "."}; }
  bool has_whole_tool_calls() const noexcept override { return called_; }

 private:
  bool inside_ = false, called_ = false;
};

AnswerPlan toy_plan(int32_t n = 1) {
  AnswerPlan made = plan(true, 1, n);
  made.parser = [] { return std::make_unique<ToyParser>(); };
  return made;
}

TEST(ChatStream, MessagesAreSplit) {
  AnswerPlan asked = toy_plan();
  asked.common.include_usage = true;
  const std::vector<std::string> events = stream(asked, {{0, token("[", 1)},
                                                         {0, token("why", 1)},
                                                         {0, token("]so", 1)},
                                                         {0, token("!", 1)},
                                                         {0, end(FinishReason::kStop)}});
  std::vector<std::string> deltas;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    deltas.push_back(to_text(Json::parse(events[i])["choices"][0]["delta"]));
  }
  EXPECT_THAT(
      deltas,
      ElementsAre(
          R"({"role":"assistant","content":""})", R"({"reasoning_content":"why"})", R"({"content":"so"})",
          R"({"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]})",
          R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]})", R"({"content":"."})", "{}"));
  EXPECT_EQ(Json::parse(events[events.size() - 3])["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(Json::parse(events[events.size() - 2])["usage"]["completion_tokens_details"]["reasoning_tokens"], 2);
}

TEST(ChatStream, WhatWasCutIsNoCall) {
  StreamWriter writer(toy_plan());
  const std::vector<std::string> events = stream(writer, {{0, token("!", 1)}, {0, end(FinishReason::kLength)}});
  EXPECT_EQ(Json::parse(events[events.size() - 2])["choices"][0]["finish_reason"], "length");
  EXPECT_FALSE(writer.calls_tools());
}

TEST(WholeChat, SaysWhatTheStreamSays) {
  PendingAnswer pending(toy_plan(2));
  EXPECT_FALSE(pending.add(0, token("[wh", 1)));
  EXPECT_FALSE(pending.add(0, token("plain", 1, 1)));
  EXPECT_FALSE(pending.add(0, token("y]!", 1)));
  EXPECT_FALSE(pending.add(0, end(FinishReason::kStop, false, 0)));
  EXPECT_TRUE(pending.add(0, end(FinishReason::kLength, true, 1)));
  EXPECT_TRUE(pending.calls_tools());
  EXPECT_EQ(
      to_text(pending.body().body),
      R"({"id":"x-1","object":"chat.completion","created":7,"model":"m","system_fingerprint":"fp","service_tier":null,)"
      R"("choices":[{"index":0,"message":{"role":"assistant","content":".","refusal":null,"reasoning_content":"why",)"
      R"("tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},)"
      R"("logprobs":null,"finish_reason":"tool_calls","stop_reason":null},)"
      R"({"index":1,"message":{"role":"assistant","content":"plain.","refusal":null},)"
      R"("logprobs":null,"finish_reason":"length","stop_reason":null}],)"
      R"("usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0},)"
      R"("completion_tokens_details":{"reasoning_tokens":2,"accepted_prediction_tokens":0,)"
      R"("rejected_prediction_tokens":0}}})");
}

TEST(TextStream, ReasonStandsWithTheLastText) {
  GenerationEvent last = end(FinishReason::kStop, true, 0, "b");
  last.stop_cause.text = "STOP";
  EXPECT_THAT(
      stream(plan(false), {{0, token("a", 1)}, {0, token("", 1)}, {0, last}}),
      ElementsAre(text_chunk(R"({"index":0,"text":"a","logprobs":null,"finish_reason":null})"),
                  text_chunk(R"({"index":0,"text":"b","logprobs":null,"finish_reason":"stop","stop_reason":"STOP"})"),
                  "[DONE]"));
}

TEST(TextStream, PromptsAreNumberedThrough) {
  const std::vector<std::string> events = stream(
      plan(false, 2, 2),
      {{1, token("d", 1, 1)}, {0, token("a", 1, 0)}, {1, end(FinishReason::kStop)}, {0, end(FinishReason::kStop)}});
  EXPECT_EQ(Json::parse(events[0])["choices"][0]["index"], 3);
  EXPECT_EQ(Json::parse(events[1])["choices"][0]["index"], 0);
  EXPECT_EQ(events.size(), 5u) << "one [DONE], after both";
}

TEST(TextStream, EchoComesFirstWithItsLogprobs) {
  AnswerPlan asked = plan(false);
  asked.common.sampling.logprobs = asked.common.sampling.prompt_logprobs = 0;
  asked.echoed = {{.text = "bc", .tokens = {1, 2}}};
  GenerationEvent first = token("d", 3), last = end(FinishReason::kLength, true, 0, "e");
  first.prompt_logprobs = {{.chosen = {.token = 2, .logprob = -1}}};
  first.logprobs = {{.chosen = {.token = 3, .logprob = -2}}};
  last.tokens = {4};
  last.logprobs = {{.chosen = {.token = 4, .logprob = -3}}};
  const std::vector<std::string> events = stream(asked, {{0, first}, {0, last}});
  const Json echoed = Json::parse(events[0])["choices"][0], rest = Json::parse(events[1])["choices"][0];
  EXPECT_EQ(echoed["text"], "bcd");
  EXPECT_EQ(echoed["logprobs"]["tokens"], Json::parse(R"(["b","c","d"])"));
  EXPECT_EQ(echoed["logprobs"]["token_logprobs"], Json::parse("[null,-1.0,-2.0]"));
  EXPECT_EQ(echoed["prompt_logprobs"][1]["2"]["rank"], 1);
  EXPECT_EQ(rest["logprobs"]["text_offset"], Json::parse("[3]"));
}

TEST(TextStream, TimingsOnRequest) {
  AnswerPlan asked = plan(false);
  asked.common.timings = true;
  GenerationEvent last = end(FinishReason::kStop);
  last.usage = {.prompt_tokens = 30,
                .cached_tokens = 10,
                .completion_tokens = 5,
                .queued_seconds = 0.5,
                .first_token_seconds = 1.5,
                .total_seconds = 3.5};
  const std::vector<std::string> events = stream(asked, {{0, token("a", 1)}, {0, last}});
  EXPECT_FALSE(Json::parse(events[0]).contains("timings"));
  EXPECT_EQ(to_text(Json::parse(events[1])["timings"]),
            R"({"cache_n":10,"prompt_n":20,"prompt_ms":1000,"prompt_per_second":20,)"
            R"("predicted_n":5,"predicted_ms":2000,"predicted_per_second":2.5})");
}

TEST(JsonText, IsTheTextForWhateverIsUtf8) {
  std::mt19937 random(1);
  const std::string pieces[] = {"a",    "\"",   "\\", "\n", "\t", std::string(1, '\0'),
                                "\x1f", "\x7f", "é",  "你", "🌍",  "</"};
  for (int round = 0; round < 2000; ++round) {
    std::string text, out = "\"";
    for (size_t n = random() % 12; n > 0; --n) text += pieces[random() % std::size(pieces)];
    append_json_text(out, text);
    out += '"';
    ASSERT_EQ(Json::parse(out).get<std::string>(), text);
  }
}

TEST(JsonText, IsUtf8ForAnyBytes) {
  std::mt19937 random(2);
  for (int round = 0; round < 5000; ++round) {
    std::string text, out;
    for (size_t n = random() % 9; n > 0; --n) text += static_cast<char>(random() % 4 == 0 ? 'x' : random() % 256);
    append_json_text(out, text);
    ASSERT_TRUE(is_utf8(out));
    const std::string back = Json::parse("\"" + out + "\"").get<std::string>();
    ASSERT_EQ(back == text, is_utf8(text));
  }
}

}  // namespace
}  // namespace headrace::openai
