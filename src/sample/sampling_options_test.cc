#include "sample/sampling_options.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace headrace {
namespace {

std::string error_of(const SamplingParams& params) {
  try {
    check_sampling_params(params);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  return "";
}

TEST(SamplingParams, DefaultsAndEdgesAreValid) {
  EXPECT_EQ(error_of({}), "");
  EXPECT_EQ(error_of({.temperature = 0}), "");
  EXPECT_EQ(error_of({.top_k = -1, .top_p = 1e-6f, .min_p = 1}), "");
  EXPECT_EQ(error_of({.n = 128, .best_of = 128, .max_tokens = 4, .min_tokens = 4, .logprobs = 20}), "");
  EXPECT_EQ(error_of({.logit_bias = {{0, -100.0f}, {1, 100.0f}}, .bad_words = {{1, 2}}}), "");
  EXPECT_EQ(error_of({.presence_penalty = -2, .frequency_penalty = 2, .seed = UINT64_MAX}), "");
}

TEST(SamplingParams, NamesParameterValueAndRange) {
  EXPECT_EQ(error_of({.temperature = -0.1f}), "temperature: '-0.1' is not a number from 0 to 100");
  EXPECT_EQ(error_of({.top_k = -2}), "top_k: '-2' is not an integer, at least -1");
  EXPECT_EQ(error_of({.top_p = 0}), "top_p: '0' is not a number above 0, at most 1");
  EXPECT_EQ(error_of({.top_p = 1.5f}), "top_p: '1.5' is not a number above 0, at most 1");
  EXPECT_EQ(error_of({.min_p = 2}), "min_p: '2' is not a number from 0 to 1");
  EXPECT_EQ(error_of({.repetition_penalty = 0}), "repetition_penalty: '0' is not a number above 0, at most 100");
  EXPECT_EQ(error_of({.presence_penalty = 3}), "presence_penalty: '3' is not a number from -2 to 2");
  EXPECT_EQ(error_of({.frequency_penalty = -3}), "frequency_penalty: '-3' is not a number from -2 to 2");
  EXPECT_EQ(error_of({.max_tokens = -1}), "max_tokens: '-1' is not an integer, at least 0");
  EXPECT_EQ(error_of({.stop = {"a", ""}}), "stop: an empty text would end every answer at once");
  EXPECT_EQ(error_of({.typical_p = 0}), "typical_p: '0' is not a number above 0, at most 1");
  EXPECT_EQ(error_of({.min_tokens = -1}), "min_tokens: '-1' is not an integer, at least 0");
  EXPECT_EQ(error_of({.max_tokens = 3, .min_tokens = 4}), "min_tokens: 4 is more than max_tokens, 3");
  EXPECT_EQ(error_of({.stop_token_ids = {5, -1}}),
            "stop_token_ids: '-1' is not a list of integers with commas, each, at least 0");
  EXPECT_EQ(error_of({.logit_bias = {{1, 100.0f}, {7, -100.5f}}}),
            "logit_bias: -100.5 for token 7 is not from -100 to 100");
  EXPECT_NE(error_of({.logit_bias = {{1, std::numeric_limits<float>::quiet_NaN()}}}), "");
  EXPECT_EQ(error_of({.bad_words = {{1}, {}}}), "bad_words: a word of no tokens");
  EXPECT_EQ(error_of({.n = 0}), "n: '0' is not an integer from 1 to 128");
  EXPECT_EQ(error_of({.n = 3, .best_of = 2}), "best_of: 2 is less than n, 3");
  EXPECT_EQ(error_of({.logprobs = 21}), "logprobs: '21' is not an integer from 0 to 20");
  EXPECT_EQ(error_of({.prompt_logprobs = -1}), "prompt_logprobs: '-1' is not an integer from 0 to 20");
  EXPECT_NE(error_of({.temperature = std::numeric_limits<float>::quiet_NaN()}), "");
  EXPECT_NE(error_of({.temperature = std::numeric_limits<float>::infinity()}), "");
}

TEST(SamplingParams, TokensAreOfTheVocabulary) {
  const auto error_with = [](const SamplingParams& params) -> std::string {
    try {
      check_sampling_tokens(params, 10);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(error_with({.logit_bias = {{9, 1.0f}}, .allowed_token_ids = {0, 9}, .bad_words = {{9}}}), "");
  EXPECT_EQ(error_with({.logit_bias = {{-1, 1.0f}}}), "logit_bias: token -1 is not in the vocabulary of 10 tokens");
  EXPECT_EQ(error_with({.allowed_token_ids = {10}}),
            "allowed_token_ids: token 10 is not in the vocabulary of 10 tokens");
  EXPECT_EQ(error_with({.bad_words = {{1, 11}}}), "bad_words: token 11 is not in the vocabulary of 10 tokens");
  EXPECT_EQ(error_with({.stop_token_ids = {10}}), "stop_token_ids: token 10 is not in the vocabulary of 10 tokens");
}

}  // namespace
}  // namespace headrace
