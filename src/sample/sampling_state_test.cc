#include "sample/sampling_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <string_view>
#include <thread>

#include "base/cat.h"
#include "sample/sampler.h"

namespace headrace {
namespace {

using ::testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> applied(SamplingState& state, std::vector<float> logits) {
  state.apply(logits);
  return logits;
}

TEST(SamplingState, WithoutParametersThereAreNoProcessors) {
  EXPECT_FALSE(SamplingState({}, 1, 0, {}).has_processors());
  EXPECT_TRUE(SamplingState({.allowed_token_ids = {1}}, 1, 0, {}).has_processors());
}

TEST(SamplingState, AllowedTokensAreTheOnlyOnes) {
  SamplingState state({.allowed_token_ids = {1, 3, 900}}, 1, 0, {});
  EXPECT_THAT(applied(state, {5, 1, 4, 2}), ElementsAre(-kInf, 1, -kInf, 2));
  std::vector<float> row(1000, 0.5f);
  state.apply(row);
  EXPECT_EQ(std::ranges::count(row, 0.5f), 3);
  EXPECT_EQ(row[900], 0.5f);
}

TEST(SamplingState, BadWordsAreBannedWhereTheyWouldBecomeWhole) {
  SamplingState state({.bad_words = {{2}, {0, 1}, {1, 1, 3}}}, 1, 0, std::vector<TokenId>{0});
  EXPECT_THAT(applied(state, {1, 1, 1, 1}), ElementsAre(1, 1, -kInf, 1)) << "the prompt does not count";
  state.accept(0);
  EXPECT_THAT(applied(state, {1, 1, 1, 1}), ElementsAre(1, -kInf, -kInf, 1));
  state.accept(1);
  EXPECT_THAT(applied(state, {1, 1, 1, 1}), ElementsAre(1, 1, -kInf, 1));
  state.accept(1);
  EXPECT_THAT(applied(state, {1, 1, 1, 1}), ElementsAre(1, 1, -kInf, -kInf));
}

TEST(SamplingState, MinTokensHoldBackEndAndStopTokens) {
  SamplingState state({.min_tokens = 2, .stop_token_ids = {2}}, 1, 0, {}, std::vector<TokenId>{0});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(applied(state, {1, 1, 1}), ElementsAre(-kInf, 1, -kInf));
    EXPECT_FALSE(state.may_stop());
    state.accept(1);
  }
  EXPECT_THAT(applied(state, {1, 1, 1}), ElementsAre(1, 1, 1));
  EXPECT_TRUE(state.may_stop());
}

TEST(SamplingState, BiasComesBeforePenaltiesAndCannotLiftABan) {
  SamplingState state({.repetition_penalty = 2, .logit_bias = {{0, 3.0f}, {1, 100.0f}}, .bad_words = {{1}}}, 1, 0,
                      std::vector<TokenId>{0});
  EXPECT_THAT(applied(state, {1, 1, 1}), ElementsAre((1 + 3) / 2.0f, -kInf, 1));
}

/// Multiplies logits, to see that it comes last and follows its copy.
class Doubling final : public LogitProcessor {
 public:
  [[nodiscard]] std::unique_ptr<LogitProcessor> clone() const override { return std::make_unique<Doubling>(*this); }
  void apply(std::span<float> logits) override {
    for (float& logit : logits) logit *= factor_;
  }
  void accept(TokenId) override { factor_ *= 2; }

 private:
  float factor_ = 1;
};

TEST(SamplingState, AddedProcessorsComeLastAndCopiesGoTheirOwnWay) {
  SamplingState state({.logit_bias = {{0, 1.0f}}}, 1, 0, {});
  state.add(std::make_unique<Doubling>());
  state.accept(0);
  SamplingState other = state.fork(3);
  EXPECT_EQ(other.continuation(), 3u);
  EXPECT_EQ(other.num_accepted(), 1);
  other.accept(0);
  EXPECT_THAT(applied(state, {1, 1}), ElementsAre(4, 2));
  EXPECT_THAT(applied(other, {1, 1}), ElementsAre(8, 4));
}

TEST(SamplingState, AnyHistoryEqualsItsCopies) {
  EXPECT_TRUE(rc::check([] {
    const SamplingParams params{.repetition_penalty = 1.3f,
                                .presence_penalty = 0.5f,
                                .frequency_penalty = 0.25f,
                                .bad_words = {{1, 2}, {3}},
                                .min_tokens = 3,
                                .stop_token_ids = {4}};
    const auto tokens = *rc::gen::container<std::vector<TokenId>>(rc::gen::inRange(0, 6));
    const auto cut = static_cast<size_t>(*rc::gen::inRange(0, static_cast<int>(tokens.size()) + 1));
    SamplingState whole(params, 1, 0, std::vector<TokenId>{5}), first = whole;
    for (const TokenId token : tokens) whole.accept(token);
    for (size_t i = 0; i < cut; ++i) first.accept(tokens[i]);
    SamplingState second = first;
    first.accept(0);  // of no interest to the copy
    for (size_t i = cut; i < tokens.size(); ++i) second.accept(tokens[i]);
    const std::vector<float> logits{1, -1, 2, 3, 0.5f, -0.25f};
    RC_ASSERT(applied(whole, logits) == applied(second, logits));
  }));
}

/// A token for each byte, after <unk>, <s> and </s>.
GgufVocab byte_vocab() {
  GgufVocab vocab;
  vocab.model = "llama";
  vocab.tokens = {"<unk>", "<s>", "</s>"};
  vocab.types = {2, 3, 3};
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (size_t byte = 0; byte < 256; ++byte) {
    vocab.tokens.push_back(cat("<0x", kHex[byte / 16], kHex[byte % 16], ">"));
    vocab.types.push_back(6);
  }
  vocab.scores.resize(vocab.tokens.size());
  vocab.unk = 0;
  vocab.bos = 1;
  vocab.eos = 2;
  return vocab;
}
constexpr TokenId token_of(char c) { return 3 + static_cast<unsigned char>(c); }

class Structured : public ::testing::Test {
 protected:
  Tokenizer tokenizer_ = Tokenizer::from_gguf("bytes", byte_vocab());
  std::vector<TokenId> ends_{*tokenizer_.eos()};
  GrammarFactory factory_{tokenizer_, ends_};
  Sampler sampler_{tokenizer_.vocab_size()};

  SamplingState state_of(const SamplingParams& params, uint64_t seed = 1) {
    return SamplingState(params, seed, 0, {}, ends_, factory_.compile(params.structured_output));
  }
  /// The text of random logits, masks being made on another thread.
  std::string write(SamplingState& state, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 2);
    std::vector<float> logits(static_cast<size_t>(tokenizer_.vocab_size()));
    std::string text;
    for (int64_t position = 0; position < 200 && !state.is_finished(); ++position) {
      std::thread helper([&] { state.prepare(); });
      for (float& logit : logits) logit = normal(random);
      helper.join();
      const TokenId token = sampler_.sample(logits, state, position);
      EXPECT_NE(token, kNoToken) << state.failure();
      if (token == kNoToken || token == ends_[0]) break;
      text += tokenizer_.token_bytes(token);
      state.accept(token);
    }
    return text;
  }
};

TEST_F(Structured, TextsFitTheGrammarGreedyAndDrawn) {
  const std::vector<std::string> choices{"yes", "no", "11 a1!"};
  std::set<std::string> seen;
  for (const float temperature : {0.0f, 1.0f}) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      SamplingState state = state_of(
          {.temperature = temperature, .top_k = seed % 2 == 0 ? 0 : 5, .structured_output = ChoiceOutput{choices}});
      seen.insert(write(state, seed));
      EXPECT_EQ(state.failure(), "");
      EXPECT_TRUE(state.is_finished());
    }
  }
  EXPECT_EQ(seen, std::set<std::string>(choices.begin(), choices.end()));
}

TEST_F(Structured, ForksWriteTheSameAndGoTheirOwnWay) {
  SamplingState state = state_of({.structured_output = RegexOutput{"a(1|!){20}"}});
  state.prepare();
  state.accept(token_of('a'));
  SamplingState fork = state.fork(0), other = state.fork(1);
  const std::string text = write(state, 5);
  EXPECT_EQ(text.size(), 20u);
  EXPECT_EQ(write(fork, 5), text);
  EXPECT_NE(write(other, 5), text);
}

TEST_F(Structured, MasksThatLeaveNothingGiveNoToken) {
  SamplingState state = state_of({.allowed_token_ids = {token_of('!')}, .structured_output = RegexOutput{"a"}});
  const std::vector<float> logits(static_cast<size_t>(tokenizer_.vocab_size()), 1.0f);
  EXPECT_EQ(sampler_.sample(logits, state, 0), kNoToken);
}

TEST_F(Structured, ATokenOutsideTheGrammarIsAFailure) {
  SamplingState state = state_of({.temperature = 0, .structured_output = RegexOutput{"ab"}});
  state.accept(token_of('!'));
  const std::vector<float> logits(static_cast<size_t>(tokenizer_.vocab_size()), 1.0f);
  EXPECT_EQ(sampler_.sample(logits, state, 1), kNoToken);
  EXPECT_THAT(state.failure(), ::testing::HasSubstr("does not go on"));
}

}  // namespace
}  // namespace headrace
