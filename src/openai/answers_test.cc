// Bodies of answers, and lines of batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "openai/answer_json.h"
#include "openai/batch_line.h"

namespace headrace::openai {
namespace {

using ::testing::HasSubstr;

TokenNames letters() {
  return {.bytes = [](int32_t token) { return token == 0 ? std::string("\xC3") : std::string(1, char('a' + token)); }};
}

TEST(Answers, ChatLogprobsTellTheBytes) {
  const std::vector<TokenLogprobs> tokens{
      {.chosen = {.token = 0, .logprob = -1.5f}, .top = {{.token = 1, .logprob = -0.5f}}}};
  const Json json = chat_logprobs_json(tokens, letters());
  EXPECT_EQ(json["content"][0]["bytes"], Json::parse("[195]"));
  EXPECT_EQ(json["content"][0]["top_logprobs"][0]["token"], "b");
  EXPECT_NO_THROW((void)to_text(json)) << "half a character";
}

TEST(Answers, EchoedPromptComesFirstWithoutAProbability) {
  Answer answer;
  answer.prompt_logprobs = {{.chosen = {.token = 2, .logprob = -1}}};
  answer.choices.push_back({.text = "d", .tokens = {3}, .logprobs = {{.chosen = {.token = 3, .logprob = -2}}}});
  const Json choice = completion_choices_json(answer, 4, {.text = "bc", .tokens = {1, 2}}, true, letters())[0];
  EXPECT_EQ(choice["index"], 4);
  EXPECT_EQ(choice["text"], "bcd");
  EXPECT_EQ(choice["logprobs"]["tokens"], Json::parse(R"(["b","c","d"])"));
  EXPECT_EQ(choice["logprobs"]["token_logprobs"], Json::parse("[null,-1.0,-2.0]"));
  EXPECT_EQ(choice["logprobs"]["text_offset"], Json::parse("[0,1,2]"));
  EXPECT_TRUE(choice["logprobs"]["top_logprobs"][0].is_null());
}

TEST(Answers, PartsOfCharactersHaveNamesOfTheirOwn) {
  Answer answer;
  answer.choices.push_back({.text = "", .tokens = {0}, .logprobs = {{.chosen = {.token = 0, .logprob = -1}}}});
  const Json choice = completion_choices_json(answer, 0, {}, true, letters())[0];
  EXPECT_EQ(choice["logprobs"]["tokens"][0], "bytes:\\xc3");
}

TEST(Answers, PromptLogprobsAreByTokenId) {
  const std::vector<TokenLogprobs> tokens{{.chosen = {.token = 2, .logprob = -1, .rank = 3}, .top = {{.token = 1}}}};
  const Json json = prompt_logprobs_json(tokens, letters());
  EXPECT_TRUE(json[0].is_null());
  EXPECT_EQ(json[1]["2"]["rank"], 3);
  EXPECT_EQ(json[1]["1"]["decoded_token"], "b");
}

TEST(Answers, InfiniteLogprobsAreNumbers) {
  Answer answer;
  const float never = -std::numeric_limits<float>::infinity();
  answer.choices.push_back({.text = "b", .tokens = {1}, .logprobs = {{.chosen = {.token = 1, .logprob = never}}}});
  const Json choice = completion_choices_json(answer, 0, {}, true, letters())[0];
  EXPECT_EQ(choice["logprobs"]["token_logprobs"][0], -9999.0);
}

TEST(Answers, ErrorsCarryStatusTypeAndCode) {
  const ErrorAnswer context = error_answer(ContextLengthError(300, 256));
  EXPECT_EQ(context.status, 400);
  EXPECT_EQ(context.body["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(context.body["error"]["n_prompt_tokens"], 300);
  const ErrorAnswer field = error_answer(RequestError("invalid_value", "n", "n: found 0"));
  EXPECT_EQ(field.body["error"]["param"], "n");
  const ErrorAnswer tokens = error_answer(ParameterError("prompt", "token 9 is not in the vocabulary of 5"));
  EXPECT_EQ(tokens.body["error"]["param"], "prompt");
  const ErrorAnswer schema = error_answer(ParameterError("structured_output", "structured_output: no"));
  EXPECT_EQ(schema.body["error"]["code"], "invalid_schema");
  EXPECT_EQ(error_answer(Error(ErrorCode::kUnavailable, "x")).status, 503);
  EXPECT_EQ(error_answer(Error(ErrorCode::kTimeout, "x")).body["error"]["code"], "timeout");
  EXPECT_EQ(error_answer(Error(ErrorCode::kInternal, "x")).body["error"]["type"], "server_error");
}

TEST(BatchLine, ReadsOpenAisFormat) {
  const BatchLine line =
      read_batch_line(R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"messages":[]}})");
  EXPECT_EQ(line.custom_id, "a");
  EXPECT_TRUE(line.body.contains("messages"));
  const auto fault = [](const char* text) -> std::string {
    try {
      (void)read_batch_line(text);
    } catch (const RequestError& error) {
      return error.message();
    }
    return "accepted";
  };
  EXPECT_THAT(fault(R"({"url":"/v1/completions","body":{}})"), HasSubstr("custom_id"));
  EXPECT_THAT(fault(R"({"custom_id":"a","url":"/v1/embeddings","body":{}})"), HasSubstr("url"));
  EXPECT_THAT(fault(R"({"custom_id":"a","url":"/v1/completions"})"), HasSubstr("body"));
}

TEST(BatchLine, ResultsAreFoundAgain) {
  const std::string line = batch_result_line("a \"quoted\" id", "cmpl-1", {200, {{"x", 1}}});
  EXPECT_EQ(read_batch_result(line).custom_id, "a \"quoted\" id");
  EXPECT_EQ(read_batch_result(line.substr(0, line.size() / 2)).custom_id, "") << "half written";
  EXPECT_EQ(read_batch_result(R"({"custom_id":"a"})").custom_id, "") << "a line of the input";
  for (const int status : {200, 400, 404}) {
    EXPECT_TRUE(read_batch_result(batch_result_line("a", "cmpl-1", {status, {}})).is_final) << status;
  }
  for (const int status : {429, 500, 503}) {
    EXPECT_FALSE(read_batch_result(batch_result_line("a", "cmpl-1", {status, {}})).is_final) << status;
  }
}

}  // namespace
}  // namespace headrace::openai
