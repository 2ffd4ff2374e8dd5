#include "cluster/result_codec.h"

#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "base/byte_reader.h"
#include "cluster/error_code.h"

namespace headrace::cluster {
namespace {

constexpr size_t kStageBytes = 9 * sizeof(double);
constexpr double kMostSeconds = 1e9;  // 30 years: what is longer, or no number, is no time
constexpr size_t kOutputBytes = 8 + 4;
constexpr uint8_t kIsResult = 0;
constexpr uint8_t kIsFailure = 1;
constexpr const char* kNoTime = "a time of a stage that is none";

Error corrupt(const std::string& what) { return Error(ErrorCode::kCorrupt, cat("result of a step: ", what)); }

/// All numbers of a report, in the order in which they cross.
template <class Report>
auto numbers_of(Report& report) {
  auto& [compute, cpu, wait, serialise, wire] = report.seconds;
  auto& [plan, rows, begin, sent] = report.moments;
  return std::array{&compute, &cpu, &wait, &serialise, &wire, &plan, &rows, &begin, &sent};
}

void append_stages(std::vector<std::byte>& out, std::span<const StageReport> stages) {
  append_count(out, stages.size());
  for (const StageReport& stage : stages) {
    for (const double* const seconds : numbers_of(stage)) append_le(out, *seconds);
  }
}

/// Without a value where a time is none.
std::optional<std::vector<StageReport>> take_stages(ByteReader& in) {
  std::vector<StageReport> stages(in.take_count(kStageBytes));
  bool all_times = true;
  for (StageReport& stage : stages) {
    for (double* const seconds : numbers_of(stage)) {
      *seconds = in.take<double>();
      all_times = all_times && std::abs(*seconds) < kMostSeconds;
    }
  }
  if (!all_times) return std::nullopt;
  return stages;
}

/// What follows the stages.
Result<StepResult> take_result(ByteReader& in, StepResult result, uint64_t width) {
  result.outputs.resize(in.take_count(kOutputBytes));
  for (OutputRow& output : result.outputs) {
    output.sequence = SequenceId{in.take<uint64_t>()};
    output.position = in.take<int32_t>();
  }
  result.tokens.resize(in.take_count(sizeof(TokenId)));
  for (TokenId& token : result.tokens) token = in.take<TokenId>();
  result.stage_seconds.resize(in.take_count(sizeof(double)));
  for (double& seconds : result.stage_seconds) seconds = in.take<double>();
  if (!in.ok()) return corrupt("cut short or a count too large");
  const size_t values = in.left() / sizeof(float);
  const bool fits = width == 0 || result.outputs.size() <= values / width;
  if (!fits || in.left() != result.outputs.size() * width * sizeof(float)) {
    return corrupt(cat(in.left(), " bytes of data for ", result.outputs.size(), " outputs of width ", width));
  }
  result.width = static_cast<int64_t>(width);
  result.data.resize(values);
  const std::span<const std::byte> data = in.take_bytes(in.left());
  if (!data.empty()) std::memcpy(result.data.data(), data.data(), data.size());
  return result;
}

Result<StepOutcome> take_failure(ByteReader& in, unsigned code_number, std::vector<StageReport> stages) {
  const size_t size = in.take_count(1);
  const std::span<const std::byte> text = in.take_bytes(size);
  const std::optional<ErrorCode> code = error_code_of(code_number);
  if (!in.ok() || in.left() != 0 || size > kMaxErrorBytes || !code) {
    return corrupt(cat("no error: code ", code_number, ", message of ", size, " bytes"));
  }
  const std::string_view message(reinterpret_cast<const char*>(text.data()), text.size());
  return StepOutcome{.result = Error(*code, printable(message, kMaxErrorBytes)), .stages = std::move(stages)};
}

}  // namespace

void encode_result(const StepResult& result, std::span<const StageReport> stages, std::vector<std::byte>& out) {
  const auto width = static_cast<uint64_t>(result.width);
  HR_CHECK(result.data.size() == result.outputs.size() * width, result.data.size(), " values, width ", width);
  append_le(out, uint32_t{kIsResult});
  append_le(out, raw(result.epoch));
  append_le(out, raw(result.step_id));
  append_le(out, width);
  append_stages(out, stages);
  append_count(out, result.outputs.size());
  for (const OutputRow& output : result.outputs) {
    append_le(out, raw(output.sequence));
    append_le(out, output.position);
  }
  append_count(out, result.tokens.size());
  for (const TokenId token : result.tokens) append_le(out, token);
  append_count(out, result.stage_seconds.size());
  for (const double seconds : result.stage_seconds) append_le(out, seconds);
}

void encode_failure(const Error& error, std::span<const StageReport> stages, std::vector<std::byte>& out) {
  append_le(out, kIsFailure);
  append_le(out, static_cast<uint8_t>(error.code()));
  append_le(out, uint16_t{0});
  append_stages(out, stages);
  // Where it is cut, "..." follows, and the last escape may reach over.
  const std::string message = printable(error.message(), kMaxErrorBytes - 8);
  const auto bytes = std::as_bytes(std::span(message));
  append_count(out, bytes.size());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Result<StepOutcome> decode_outcome(std::span<const std::byte> payload) {
  ByteReader in(payload);
  const uint8_t kind = in.take<uint8_t>();
  const uint8_t code = in.take<uint8_t>();
  const uint16_t zeros = in.take<uint16_t>();
  if (!in.ok() || kind > kIsFailure || zeros != 0) return corrupt("neither a result nor an error");
  if (kind == kIsFailure) {
    std::optional<std::vector<StageReport>> stages = take_stages(in);
    if (!stages) return corrupt(kNoTime);
    return take_failure(in, code, std::move(*stages));
  }
  if (code != 0) return corrupt("padding is not zero");
  StepResult result;
  result.epoch = EpochId{in.take<uint32_t>()};
  result.step_id = StepId{in.take<uint64_t>()};
  const uint64_t width = in.take<uint64_t>();
  std::optional<std::vector<StageReport>> stages = take_stages(in);
  if (!stages) return corrupt(kNoTime);
  Result<StepResult> whole = take_result(in, std::move(result), width);
  if (!whole) return whole.error();
  return StepOutcome{.result = std::move(whole), .stages = std::move(*stages)};
}

}  // namespace headrace::cluster
