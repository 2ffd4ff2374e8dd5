#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/cat.h"
#include "headrace/headrace.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;

std::string data(const std::string& path) { return std::string(HR_TEST_DATA) + "/" + path; }

Model load_tiny(const std::string& name = "models/llama") {
  return Model::load(data(name), {.numerics = "exact", .threads = 1});
}

SamplingParams greedy(int32_t max_tokens) { return {.temperature = 0, .max_tokens = max_tokens}; }

std::string prompt0_text() {
  std::ifstream file(data("models/llama/golden.json"));
  return nlohmann::json::parse(file).at("prompt0_text");
}

TEST(Model, PiecesMakeUpTheTextAndGreedyRepeats) {
  Model model = load_tiny();
  std::string streamed;
  const Generation first = model.generate(prompt0_text(), greedy(32), [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  EXPECT_EQ(streamed, first.text);
  EXPECT_FALSE(first.text.empty());
  EXPECT_EQ(first.completion_tokens, 32);
  EXPECT_EQ(first.prompt_tokens, 31) << "the golden's length";
  EXPECT_EQ(first.reason, FinishReason::kLength);
  EXPECT_GT(first.first_token_seconds, 0);
  EXPECT_LE(first.first_token_seconds, first.total_seconds);
  EXPECT_EQ(model.generate(prompt0_text(), greedy(32)).text, first.text);
}

TEST(Model, SameSeedSameTextOtherSeedOther) {
  Model model = load_tiny();
  SamplingParams params{.temperature = 1.5f, .seed = 11, .max_tokens = 24};
  const std::string a = model.generate("a river", params).text;
  EXPECT_EQ(model.generate("a river", params).text, a);
  params.seed = 12;
  EXPECT_NE(model.generate("a river", params).text, a);
}

TEST(Model, StopTextEndsTheAnswerAndIsNotPartOfIt) {
  Model model = load_tiny();
  const std::string whole = model.generate(prompt0_text(), greedy(32)).text;
  ASSERT_GT(whole.size(), 12u);
  // Any text within the answer serves; its first place is where the answer must end.
  SamplingParams params = greedy(32);
  params.stop = {whole.substr(whole.size() / 2, 4)};
  std::string streamed;
  const Generation cut = model.generate(prompt0_text(), params, [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  EXPECT_EQ(cut.text, whole.substr(0, whole.find(params.stop[0])));
  EXPECT_EQ(streamed, cut.text);
  EXPECT_EQ(cut.reason, FinishReason::kStop);
}

TEST(Model, SinkCancelsAndTheModelGoesOn) {
  Model model = load_tiny();
  int calls = 0;
  const Generation cancelled =
      model.generate(prompt0_text(), greedy(32), [&](std::string_view) { return ++calls < 3; });
  EXPECT_EQ(cancelled.reason, FinishReason::kCancelled);
  EXPECT_EQ(cancelled.completion_tokens, 3);
  // A sink that throws leaves no sequence behind either: the cache has room for one.
  EXPECT_THROW(model.generate("x", greedy(8), [](std::string_view) -> bool { throw std::runtime_error("sink"); }),
               std::runtime_error);
  EXPECT_EQ(model.generate(prompt0_text(), greedy(4)).completion_tokens, 4);
}

TEST(Model, SaysWhatIsWrong) {
  Model model = Model::load(data("models/llama"), {.threads = 1, .max_model_len = 32});
  EXPECT_EQ(model.max_model_len(), 32);
  const auto error_of = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  };
  EXPECT_THAT(error_of([&] { model.generate(prompt0_text() + prompt0_text(), {}); }), HasSubstr("--max-model-len"));
  EXPECT_THAT(error_of([&] { model.generate("x", {.top_p = 2}); }), HasSubstr("top_p: '2' is not"));
  EXPECT_THAT(error_of([] { (void)Model::load(data("models/none")); }), HasSubstr("models/none"));
  EXPECT_THAT(error_of([] { (void)Model::load(data("models/llama"), {.isa = "mmx"}); }), HasSubstr("mmx"));
  EXPECT_THAT(error_of([] { (void)Model::load(data("models/llama"), {.numerics = "fast"}); }),
              HasSubstr("portable, fastest, exact"));
  EXPECT_THAT(error_of([] { (void)Model::load(data("models/llama"), {.chat_template = "{% if %}"}); }),
              HasSubstr("chat template"));
}

TEST(Model, ChatNeedsATemplateThatAcceptsTheConversation) {
  const std::vector<Message> messages{{"user", "hello"}};
  Model own = load_tiny();
  ASSERT_TRUE(own.has_chat_template());
  EXPECT_EQ(own.chat(messages, greedy(4)).completion_tokens, 4);
  Model refusing = Model::load(data("models/llama"),
                               {.threads = 1, .chat_template = "{{ raise_exception('only systems may speak') }}"});
  try {
    refusing.chat(messages, greedy(4));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("only systems may speak"));
  }
}

TEST(Model, DefaultsAreTheModels) { EXPECT_EQ(load_tiny().default_params().temperature, 0) << "do_sample is false"; }

}  // namespace
}  // namespace headrace
