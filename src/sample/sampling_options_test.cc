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
  EXPECT_NE(error_of({.temperature = std::numeric_limits<float>::quiet_NaN()}), "");
  EXPECT_NE(error_of({.temperature = std::numeric_limits<float>::infinity()}), "");
}

}  // namespace
}  // namespace headrace
