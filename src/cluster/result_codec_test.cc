#include "cluster/result_codec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "base/byte_order.h"
#include "cluster/error_code.h"

namespace headrace::cluster {
namespace {

double random_seconds() { return *rc::gen::inRange(0, 1000) / 1024.0; }

std::vector<StageReport> random_stages() {
  std::vector<StageReport> stages;
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    stages.push_back(
        {.seconds = {random_seconds(), random_seconds(), random_seconds(), random_seconds(), random_seconds()},
         .moments = {random_seconds(), random_seconds(), random_seconds(), random_seconds()}});
  }
  return stages;
}

StepResult random_result() {
  StepResult result;
  result.epoch = EpochId{*rc::gen::arbitrary<uint32_t>()};
  result.step_id = StepId{*rc::gen::arbitrary<uint64_t>()};
  result.width = *rc::gen::inRange(0, 5);
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i)
    result.outputs.push_back({SequenceId{*rc::gen::arbitrary<uint64_t>()}, *rc::gen::arbitrary<int32_t>()});
  for (size_t i = result.outputs.size() * static_cast<size_t>(result.width); i > 0; --i)
    result.data.push_back(static_cast<float>(*rc::gen::inRange(-1000, 1000)) / 8);
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) result.tokens.push_back(*rc::gen::arbitrary<int32_t>());
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) result.stage_seconds.push_back(random_seconds());
  return result;
}

std::vector<std::byte> payload_of(const StepResult& result, const std::vector<StageReport>& stages) {
  std::vector<std::byte> payload;
  encode_result(result, stages, payload);
  const auto data = std::as_bytes(std::span(result.data));
  payload.insert(payload.end(), data.begin(), data.end());
  return payload;
}

RC_GTEST_PROP(ResultCodec, ResultsRoundTrip, ()) {
  const StepResult result = random_result();
  const std::vector<StageReport> stages = random_stages();
  const Result<StepOutcome> outcome = decode_outcome(payload_of(result, stages));
  RC_ASSERT(outcome.ok());
  RC_ASSERT(outcome.value().result.ok());
  const StepResult& back = outcome.value().result.value();
  RC_ASSERT(back.epoch == result.epoch && back.step_id == result.step_id && back.width == result.width);
  RC_ASSERT(back.outputs == result.outputs && back.data == result.data);
  RC_ASSERT(back.tokens == result.tokens && back.stage_seconds == result.stage_seconds);
  RC_ASSERT(outcome.value().stages == stages);
}

RC_GTEST_PROP(ResultCodec, RefusesEveryTruncationAndSurplus, ()) {
  std::vector<std::byte> payload;
  if (*rc::gen::arbitrary<bool>()) {
    payload = payload_of(random_result(), random_stages());
  } else {
    encode_failure(Error(ErrorCode::kTimeout, "stage 2: too slow"), random_stages(), payload);
  }
  for (size_t n = 0; n < payload.size(); ++n) RC_ASSERT(!decode_outcome(std::span(payload).first(n)).ok());
  payload.push_back(std::byte{0});
  RC_ASSERT(!decode_outcome(payload).ok());
}

TEST(ResultCodec, FailuresKeepCodeAndWords) {
  for (unsigned number = 0; error_code_of(number); ++number) {
    std::vector<std::byte> payload;
    encode_failure(Error(*error_code_of(number), "stage 1: größer"), {}, payload);
    const Result<StepOutcome> outcome = decode_outcome(payload);
    ASSERT_TRUE(outcome.ok());
    ASSERT_FALSE(outcome.value().result.ok());
    EXPECT_EQ(outcome.value().result.error().code(), *error_code_of(number));
    EXPECT_EQ(outcome.value().result.error().message(), "stage 1: größer");
  }
}

TEST(ResultCodec, LongAndUnprintableWordsAreCutAndEscaped) {
  std::vector<std::byte> payload;
  encode_failure(Error(ErrorCode::kInternal, std::string(100'000, '\n')), {}, payload);
  const Result<StepOutcome> outcome = decode_outcome(payload);
  ASSERT_TRUE(outcome.ok());
  const std::string& message = outcome.value().result.error().message();
  EXPECT_LE(message.size(), kMaxErrorBytes);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(ResultCodec, HugeCountsAndWidthsAllocateNothing) {
  StepResult result;
  result.outputs.resize(3);
  const std::vector<std::byte> payload = payload_of(result, {});
  for (const size_t at : {16u, 20u, 24u, 28u}) {  // width, its upper half, the counts of stages and outputs
    std::vector<std::byte> other = payload;
    store_le(other.data() + at, uint32_t{0xffffffff});
    EXPECT_FALSE(decode_outcome(other).ok()) << at;
    store_le(other.data() + at, uint32_t{0x80000000});
    EXPECT_FALSE(decode_outcome(other).ok()) << at;
  }
}

TEST(ResultCodec, RefusesTimesThatAreNone) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1e300}) {
    for (const StageReport& stage : {StageReport{.seconds = {.wire = bad}}, StageReport{.moments = {.plan = bad}},
                                     StageReport{.seconds = {.compute = bad}}, StageReport{.moments = {.sent = bad}}}) {
      EXPECT_FALSE(decode_outcome(payload_of({}, {StageReport{}, stage})).ok()) << bad;
      std::vector<std::byte> failure;
      encode_failure(Error(ErrorCode::kTimeout, "too slow"), std::span(&stage, 1), failure);
      EXPECT_FALSE(decode_outcome(failure).ok()) << bad;
    }
  }
}

TEST(ErrorCodeNames, AreFoundAgain) {
  for (unsigned number = 0; error_code_of(number); ++number)
    EXPECT_EQ(find_error_code(error_code_name(*error_code_of(number))), error_code_of(number));
  EXPECT_TRUE(error_code_of(static_cast<unsigned>(ErrorCode::kInternal)));
  EXPECT_EQ(find_error_code("tired"), std::nullopt);
}

/// Seeds that do not decode would leave the fuzzer to find the format by itself.
TEST(ResultCodec, FuzzSeedsDecode) {
  int seeds = 0;
  for (const auto& file : std::filesystem::directory_iterator(HR_TEST_DATA "/fuzz/result_codec_fuzz")) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_TRUE(decode_outcome(std::as_bytes(std::span(text))).ok()) << file.path();
    ++seeds;
  }
  EXPECT_GE(seeds, 5);
}

}  // namespace
}  // namespace headrace::cluster
