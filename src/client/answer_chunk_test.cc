#include "client/answer_chunk.h"

#include <gtest/gtest.h>

namespace headrace::client {
namespace {

TEST(AnswerChunk, ReadsTextCompletions) {
  const AnswerChunk chunk = read_answer_chunk(
      R"({"id":"x","object":"text_completion","choices":[{"text":"a\u00e9","logprobs":{"text":["no"]},)"
      R"("finish_reason":null},{"index":1,"text":"b","finish_reason":"stop"}],"usage":null})");
  EXPECT_TRUE(chunk.valid);
  EXPECT_TRUE(chunk.has_choices);
  EXPECT_EQ(chunk.text, "aéb");
  EXPECT_EQ(chunk.finish_reason, "stop");
  EXPECT_FALSE(chunk.prompt_tokens);
}

TEST(AnswerChunk, ReadsChatDeltasAndWholeAnswers) {
  const AnswerChunk role = read_answer_chunk(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})");
  EXPECT_TRUE(role.has_role);
  EXPECT_EQ(role.text, "");
  EXPECT_EQ(read_answer_chunk(R"({"choices":[{"delta":{"content":"hi"}}]})").text, "hi");
  EXPECT_EQ(read_answer_chunk(R"({"choices":[{"delta":{"reasoning_content":"hm","content":null}}]})").text, "hm");
  EXPECT_EQ(read_answer_chunk(
                R"({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"x"}}]}}]})")
                .text,
            "{\"x");
  EXPECT_EQ(read_answer_chunk(R"({"choices":[{"message":{"role":"assistant","content":"all"}}]})").text, "all");
}

TEST(AnswerChunk, ReadsUsage) {
  const AnswerChunk chunk =
      read_answer_chunk(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,)"
                        R"("prompt_tokens_details":{"cached_tokens":4}},"prompt_tokens":99})");
  EXPECT_FALSE(chunk.has_choices);
  EXPECT_EQ(chunk.prompt_tokens, 7);
  EXPECT_EQ(chunk.completion_tokens, 3);
  EXPECT_EQ(chunk.cached_tokens, 4);
}

TEST(AnswerChunk, ReadsErrorsInTheFormsThatServersUse) {
  EXPECT_EQ(read_answer_chunk(R"({"error":{"message":"too long","type":"t","code":null}})").error, "too long");
  EXPECT_EQ(read_answer_chunk(R"({"error":"plain"})").error, "plain");
  EXPECT_EQ(read_answer_chunk(R"({"error":{"code":7}})").error, "(no message)");
  EXPECT_EQ(read_answer_chunk(R"({"object":"error","message":"old"})").error, "old");
  EXPECT_EQ(read_answer_chunk(R"({"error":null,"choices":[{"text":"a"}]})").error, "");
}

TEST(AnswerChunk, TellsWhatIsNoAnswer) {
  for (const char* text : {"", "{", "[1]", "7", "{\"a\":1} x", "nonsense"}) {
    EXPECT_FALSE(read_answer_chunk(text).valid) << text;
  }
  EXPECT_TRUE(read_answer_chunk(R"({"a":[[[[[[[[[[[[1]]]]]]]]]]]],"choices":[{"text":"x"}]})").has_choices);
}

}  // namespace
}  // namespace headrace::client
