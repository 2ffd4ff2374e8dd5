#include "engine/request_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "files/test_folder.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;

struct Sums {
  double prompt = 0, output = 0, prompt_squares = 0;
};
Sums sums_of(const std::vector<LoadRequest>& load) {
  Sums sums;
  for (const LoadRequest& request : load) {
    sums.prompt += request.prompt_tokens;
    sums.output += request.output_tokens;
    sums.prompt_squares += static_cast<double>(request.prompt_tokens) * request.prompt_tokens;
  }
  return sums;
}

TEST(RequestLoad, PoissonArrivalsEndWhereTheRateSays) {
  const std::vector<LoadRequest> load = make_load({.requests = 1000, .rate = 5});
  EXPECT_DOUBLE_EQ(load.back().arrival, 200);
  int close = 0;
  for (size_t i = 1; i < load.size(); ++i) {
    ASSERT_GE(load[i].arrival, load[i - 1].arrival);
    close += load[i].arrival - load[i - 1].arrival < 0.2 ? 1 : 0;
  }
  // 1 - 1/e of exponential gaps are below the mean: 632 of 1000, standard deviation 15.
  EXPECT_NEAR(close, 632, 60);
}

TEST(RequestLoad, NormalLengthsHaveMeanAndDeviation) {
  const std::vector<LoadRequest> load =
      make_load({.requests = 4000, .lengths = LengthKind::kNormal, .prompt_tokens = 1000, .output_tokens = 100});
  const Sums sums = sums_of(load);
  const double mean = sums.prompt / 4000;
  // Standard deviation of the mean of 4000: 300 / sqrt(4000) = 4.7; of their deviation: 300 / sqrt(8000) = 3.4.
  EXPECT_NEAR(mean, 1000, 20);
  EXPECT_NEAR(std::sqrt(sums.prompt_squares / 4000 - mean * mean), 300, 15);
  EXPECT_NEAR(sums.output / 4000, 100, 2);
}

TEST(RequestLoad, UnevenLengthsHaveTheSameSumsAsFixedOnes) {
  LoadSpec spec{.requests = 64, .prompt_tokens = 400, .output_tokens = 80};
  const Sums fixed = sums_of(make_load(spec));
  spec.lengths = LengthKind::kUneven;
  const std::vector<LoadRequest> load = make_load(spec);
  EXPECT_EQ(sums_of(load).prompt, fixed.prompt);
  EXPECT_EQ(sums_of(load).output, fixed.output);
  EXPECT_EQ(load[0].prompt_tokens, 100);
  EXPECT_EQ(load[3].prompt_tokens, 900);
}

class LoadFile : public testing::Test {
 protected:
  std::vector<LoadRequest> read(std::string_view text) { return read_load(folder_.write("load", text)); }
  std::string error_in(std::string_view text) {
    return error_of([&] { (void)read(text); });
  }
  TestFolder folder_;
};

TEST_F(LoadFile, ReadsCsvAndJson) {
  const std::vector<LoadRequest> expected{{0.5, 10, 3}, {2, 7, 1}};
  EXPECT_EQ(read("output, prompt, arrival, user\n1,7,2,x\r\n3, 10, 0.5, y\n"), expected);
  EXPECT_EQ(read(R"([{"arrival": 2, "prompt": 7, "output": 1}, {"arrival": 0.5, "prompt": 10, "output": 3}])"),
            expected);
}

TEST_F(LoadFile, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(error_in("arrival,prompt\n1,2\n"), HasSubstr("line 1: no column 'output'"));
  EXPECT_THAT(error_in("arrival,prompt,output\n1,2\n"), HasSubstr("line 2: output: '' is not a number"));
  EXPECT_THAT(error_in("arrival,prompt,output\n1,2,x\n"), HasSubstr("line 2: output: 'x' is not a number"));
  EXPECT_THAT(error_in("arrival,prompt,output\n1,0,3\n"), HasSubstr("line 2: arrival 1, prompt 0, output 3; expected"));
  EXPECT_THAT(error_in("arrival,prompt,output\nnan,4,3\n"), HasSubstr("line 2: arrival nan"));
  EXPECT_THAT(error_in("arrival,prompt,output\n"), HasSubstr("no requests"));
  EXPECT_THAT(error_in(""), HasSubstr("no requests"));
  EXPECT_THAT(error_in(R"({"arrival": 1})"), HasSubstr("expected an array"));
  EXPECT_THAT(error_in(R"([{"arrival": 1, "prompt": 2}])"), HasSubstr("request 0: expected an object with the number"));
}

}  // namespace
}  // namespace headrace
