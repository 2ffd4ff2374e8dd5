#include "rpc/event_message.h"

#include <gtest/gtest.h>

#include <cmath>

#include "headrace/v1/generation.pb.h"
#include "rpc/call_error.h"

namespace headrace::rpc {
namespace {

TokenLogprobs place(int32_t token) {
  return {
      .chosen = {.token = token, .logprob = -0.5f, .rank = 2},
      .top = {{.token = token + 1, .logprob = -0.25f, .rank = 1}, {.token = token, .logprob = -INFINITY, .rank = 2}}};
}

void expect_equal(const std::vector<TokenLogprobs>& a, const std::vector<TokenLogprobs>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].chosen.token, b[i].chosen.token);
    EXPECT_EQ(a[i].chosen.logprob, b[i].chosen.logprob);
    EXPECT_EQ(a[i].chosen.rank, b[i].chosen.rank);
    ASSERT_EQ(a[i].top.size(), b[i].top.size());
    for (size_t j = 0; j < a[i].top.size(); ++j) EXPECT_EQ(a[i].top[j].logprob, b[i].top[j].logprob);
  }
}

Usage usage() {
  return {.prompt_tokens = 1,
          .cached_tokens = 2,
          .completion_tokens = 3,
          .queued_seconds = 0.5,
          .first_token_seconds = 0.25,
          .total_seconds = 4};
}

void expect_equal(const Usage& a, const Usage& b) {
  EXPECT_EQ(a.prompt_tokens, b.prompt_tokens);
  EXPECT_EQ(a.cached_tokens, b.cached_tokens);
  EXPECT_EQ(a.completion_tokens, b.completion_tokens);
  EXPECT_EQ(a.queued_seconds, b.queued_seconds);
  EXPECT_EQ(a.first_token_seconds, b.first_token_seconds);
  EXPECT_EQ(a.total_seconds, b.total_seconds);
}

TEST(EventMessage, IsReadAsItWas) {
  for (const auto reason : {FinishReason::kStop, FinishReason::kLength, FinishReason::kCancelled}) {
    const GenerationEvent event{.choice = 3,
                                .text = "h\xc3\xa9",
                                .tokens = {5, 6},
                                .logprobs = {place(5), place(6)},
                                .prompt_logprobs = {place(1)},
                                .finish_reason = reason,
                                .stop_cause = {.token = 0, .text = "end"},
                                .last = true,
                                .usage = usage()};
    const GenerationEvent read = read_event(event_message(event));
    EXPECT_EQ(read.choice, 3);
    EXPECT_EQ(read.text, event.text);
    EXPECT_EQ(read.tokens, event.tokens);
    expect_equal(read.logprobs, event.logprobs);
    expect_equal(read.prompt_logprobs, event.prompt_logprobs);
    EXPECT_EQ(read.finish_reason, reason);
    EXPECT_EQ(read.stop_cause.token, 0);
    EXPECT_EQ(read.stop_cause.text, "end");
    EXPECT_TRUE(read.last);
    expect_equal(read.usage, usage());
  }
  const GenerationEvent middle = read_event(event_message({.text = "a", .tokens = {1}, .usage = usage()}));
  EXPECT_FALSE(middle.finish_reason);
  EXPECT_FALSE(middle.stop_cause.token);
  EXPECT_FALSE(middle.last);
  EXPECT_EQ(middle.usage.prompt_tokens, 0);  // it comes with the end
}

TEST(AnswerMessage, IsReadAsItWas) {
  const Answer answer{.choices = {{.text = "a", .tokens = {1}, .logprobs = {}, .reason = FinishReason::kLength},
                                  {.text = "b", .tokens = {2}, .logprobs = {place(2)}, .stop_cause = {.text = "b"}}},
                      .prompt_logprobs = {place(7)},
                      .usage = usage()};
  const Answer read = read_answer(answer_message(answer));
  ASSERT_EQ(read.choices.size(), 2u);
  EXPECT_EQ(read.choices[0].text, "a");
  EXPECT_EQ(read.choices[0].reason, FinishReason::kLength);
  EXPECT_EQ(read.choices[1].tokens, answer.choices[1].tokens);
  EXPECT_EQ(read.choices[1].reason, FinishReason::kStop);
  EXPECT_EQ(read.choices[1].stop_cause.text, "b");
  expect_equal(read.choices[1].logprobs, answer.choices[1].logprobs);
  expect_equal(read.prompt_logprobs, answer.prompt_logprobs);
  expect_equal(read.usage, usage());
}

TEST(EventMessage, AServerMayNotNameAnyChoice) {
  v1::GenerateEvent message;
  message.set_choice(-1);
  EXPECT_THROW((void)read_event(message), Error);
  message.set_choice(1 << 30);
  EXPECT_THROW((void)read_event(message), Error);
}

/// What a client throws; empty: something else than T.
template <class T>
std::string thrown(CallStatus status) {
  try {
    std::rethrow_exception(call_error(status, "host:1"));
  } catch (const T& error) {
    return error.what();
  } catch (const std::exception&) {
    return {};
  }
}

ErrorCode code(int status) {
  try {
    std::rethrow_exception(call_error({.code = status, .message = "m"}, "host:1"));
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(CallError, IsWhatAModelInTheProcessWouldThrow) {
  EXPECT_EQ(code(3), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(4), ErrorCode::kTimeout);
  EXPECT_EQ(code(5), ErrorCode::kNotFound);
  EXPECT_EQ(code(8), ErrorCode::kUnavailable);
  EXPECT_EQ(code(12), ErrorCode::kUnsupported);
  EXPECT_EQ(code(13), ErrorCode::kInternal);
  EXPECT_EQ(code(14), ErrorCode::kUnavailable);
  EXPECT_EQ(thrown<PermissionError>({.code = 16, .message = "no key"}), "no key");
  EXPECT_EQ(thrown<Error>({.code = 14, .message = "refused"}), "host:1: refused");
  EXPECT_EQ(thrown<ParameterError>({.code = 3, .message = "n: 0", .object = R"({"param":"n"})"}), "n: 0");
  const std::string object = R"({"code":"context_length_exceeded","n_prompt_tokens":9,"n_ctx":8})";
  EXPECT_EQ(thrown<ContextLengthError>({.code = 3, .message = "m", .object = object}), ContextLengthError(9, 8).what());
  // What a server made up.
  for (const char* odd :
       {"", "{", "[]", R"({"param":1,"code":{}})", R"({"code":"context_length_exceeded","n_ctx":"x"})"}) {
    EXPECT_FALSE(thrown<Error>({.code = 3, .message = "m", .object = odd}).empty()) << odd;
  }
}

}  // namespace
}  // namespace headrace::rpc
