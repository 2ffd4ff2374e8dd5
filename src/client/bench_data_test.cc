#include "client/bench_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "client/scripted_server.h"
#include "client/words.h"
#include "files/test_folder.h"

namespace headrace::client {
namespace {

using testing::HasSubstr;

/// A tokenizer server: one token at the beginning, one for each word, and one more for each word that begins with a
/// capital, as rarer words have.
class BenchData : public testing::Test {
 protected:
  BenchData()
      : server_([](const ScriptedServer::Request& request) {
          const size_t begin = request.body.find("\"prompt\":\"") + 10;
          size_t tokens = 1;
          const std::string prompt = request.body.substr(begin, request.body.find('"', begin) - begin);
          for (const std::string_view word : split_words(prompt)) tokens += word[0] >= 'A' && word[0] <= 'Z' ? 2 : 1;
          return whole_answer(200, cat(R"({"count":)", tokens, "}"));
        }),
        tokenizer_(client_, [&] {
          OpenAiTarget target;
          target.base_url = server_.url();
          return target;
        }()) {}

  std::string refusal(DataSpec spec) {
    return error_of([&] { (void)make_prompts(spec, tokenizer_); });
  }

  const TestFolder folder_;
  ScriptedServer server_;
  HttpClient client_;
  ServerTokens tokenizer_;
};

DataSpec spec_of(std::string name, std::string path, int64_t count) {
  DataSpec spec;
  spec.name = std::move(name);
  spec.path = std::move(path);
  spec.num_prompts = count;
  return spec;
}

TEST_F(BenchData, RandomPromptsHaveTheirLengths) {
  DataSpec spec = spec_of("random", "", 30);
  spec.random_input_len = 20;
  spec.random_output_len = 10;
  spec.random_range_ratio = 0.3;
  const std::vector<BenchPrompt> prompts = make_prompts(spec, tokenizer_);
  ASSERT_EQ(prompts.size(), 30u);
  std::set<int64_t> inputs, outputs;
  for (const BenchPrompt& prompt : prompts) {
    EXPECT_EQ(std::ssize(split_words(prompt.text)) + 1, prompt.prompt_tokens);
    inputs.insert(prompt.prompt_tokens);
    outputs.insert(prompt.max_tokens);
  }
  EXPECT_GE(*inputs.begin(), 14);
  EXPECT_LE(*inputs.rbegin(), 26);
  EXPECT_GE(*outputs.begin(), 7);
  EXPECT_LE(*outputs.rbegin(), 13);
  EXPECT_GT(inputs.size(), 5u);
  EXPECT_EQ(prompts, make_prompts(spec, tokenizer_));
  spec.seed = 1;
  EXPECT_NE(prompts, make_prompts(spec, tokenizer_));
}

TEST_F(BenchData, PrefixesReturn) {
  DataSpec spec = spec_of("prefix_repetition", "", 5);
  spec.prefix_len = 10;
  spec.suffix_len = 7;
  spec.num_prefixes = 2;
  spec.salt_words = "salty words";
  const std::vector<BenchPrompt> prompts = make_prompts(spec, tokenizer_);
  const auto prefix = [&](size_t i) {
    const std::vector<std::string_view> words = split_words(prompts[i].text);
    return std::vector<std::string_view>(words.begin(), words.begin() + 9);
  };
  EXPECT_EQ(prefix(0), prefix(2));
  EXPECT_NE(prefix(0), prefix(1));
  EXPECT_NE(prompts[0].text, prompts[2].text);
  for (const BenchPrompt& prompt : prompts) {
    EXPECT_TRUE(prompt.text.starts_with("salty words ")) << prompt.text;
    EXPECT_EQ(prompt.prompt_tokens, 17);
  }
  spec.name = "random";
  spec.random_input_len = 7;
  spec.random_prefix_len = 10;
  for (const BenchPrompt& prompt : make_prompts(spec, tokenizer_)) EXPECT_EQ(prompt.prompt_tokens, 17);
}

TEST_F(BenchData, WindowsOfATextMoveByAWord) {
  DataSpec spec = spec_of("text", folder_.write("text", "a b\nC  d\te f g h i j"), 3);
  spec.random_input_len = 6;
  const std::vector<BenchPrompt> prompts = make_prompts(spec, tokenizer_);
  EXPECT_EQ(prompts[0].text, "a b C d") << "the capital costs two";
  EXPECT_EQ(prompts[1].text, "b C d e");
  EXPECT_EQ(prompts[2].text, "C d e f");
  for (const BenchPrompt& prompt : prompts) EXPECT_EQ(prompt.prompt_tokens, 6);
  EXPECT_THAT(refusal(spec_of("text", folder_.write("none", " \n"), 1)), HasSubstr("no words"));
}

TEST_F(BenchData, ConversationsOfUsableLengthAreTaken) {
  const std::string path = folder_.write("talk.json", R"([
    {"conversations": [{"from": "human", "value": "one two three four"}, {"from": "gpt", "value": "a b c d e"}]},
    {"conversations": [{"from": "human", "value": "short"}, {"from": "gpt", "value": "a b c d e"}]},
    {"conversations": [{"from": "human", "value": "one two three four"}]},
    {"other": 1}])");
  const std::vector<BenchPrompt> prompts = make_prompts(spec_of("sharegpt", path, 2), tokenizer_);
  const BenchPrompt expected{.text = "one two three four", .prompt_tokens = 5, .max_tokens = 6, .arrival = 0};
  EXPECT_EQ(prompts, (std::vector<BenchPrompt>{expected, expected})) << "the only usable one comes again";
  EXPECT_THAT(refusal(spec_of("sharegpt", folder_.write("x.json", "[]"), 1)), HasSubstr("no conversation"));
  EXPECT_THAT(refusal(spec_of("sharegpt", "", 1)), HasSubstr("--dataset-path"));
}

TEST_F(BenchData, TracesKeepTheirTimes) {
  const std::string path =
      folder_.write("trace.jsonl",
                    "{\"timestamp\": 2500, \"input_length\": 4, \"output_length\": 2}\n"
                    "{\"timestamp\": 1000, \"input_length\": 9, \"output_length\": 3, \"prompt\": \"as it was\"}\n");
  const std::vector<BenchPrompt> prompts = make_prompts(spec_of("trace", path, 10), tokenizer_);
  ASSERT_EQ(prompts.size(), 2u);
  EXPECT_EQ(prompts[0], (BenchPrompt{.text = "as it was", .prompt_tokens = 4, .max_tokens = 3, .arrival = 0}));
  EXPECT_EQ(prompts[1].prompt_tokens, 4);
  EXPECT_EQ(prompts[1].max_tokens, 2);
  EXPECT_EQ(prompts[1].arrival, 1.5);
  EXPECT_EQ(make_prompts(spec_of("trace", path, 1), tokenizer_).size(), 1u);
  EXPECT_THAT(refusal(spec_of("trace", folder_.write("bad", "{\"timestamp\": 1}"), 1)),
              HasSubstr("bad, line 1: expected a number in 'input_length'"));
  EXPECT_THAT(refusal(spec_of("trace", folder_.write("bad", "{\"timestamp\": -1, \"input_length\": 1}"), 1)),
              HasSubstr("timestamp is -1"));
}

TEST_F(BenchData, LinesNameTheirOwnLengths) {
  const std::string path = folder_.write("lines", "{\"prompt\": \"a b\", \"output_tokens\": 9}\n{\"prompt\": \"c\"}\n");
  const std::vector<BenchPrompt> prompts = make_prompts(spec_of("custom", path, 10), tokenizer_);
  ASSERT_EQ(prompts.size(), 2u);
  EXPECT_EQ(prompts[0].max_tokens, 9);
  EXPECT_EQ(prompts[1].max_tokens, 256);
  EXPECT_THAT(refusal(spec_of("custom", folder_.write("bad", "{}"), 1)), HasSubstr("expected a text in 'prompt'"));
}

TEST_F(BenchData, NormalLengthsSpreadAndAreCut) {
  DataSpec spec;
  spec.lengths = LengthKind::kNormal;
  spec.random_range_ratio = 0.3;
  spec.random_input_len = 1000;
  spec.max_input_len = 1500;
  double sum = 0;
  int64_t most = 0;
  constexpr int64_t kCount = 2000;
  for (int64_t i = 0; i < kCount; ++i) {
    const Lengths lengths = random_lengths(spec, i);
    sum += static_cast<double>(lengths.input);
    most = std::max(most, lengths.input);
  }
  // Standard error 300 / sqrt(2000) = 6.7; cutting at 1.67 standard deviations takes 300 * 0.0210 = 6.3 off the mean.
  EXPECT_NEAR(sum / kCount, 993.7, 5 * 6.7);
  EXPECT_EQ(most, 1500);
}

}  // namespace
}  // namespace headrace::client
