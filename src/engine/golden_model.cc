#include "engine/golden_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/cat.h"
#include "base/error.h"
#include "engine/golden_tensors.h"
#include "files/json_file.h"

namespace headrace {
namespace {

/// Tolerance of a float32 computation, over the standard deviation.
constexpr double kExactTolerance = 1e-3;

double standard_deviation(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v);
  const double mean = sum / static_cast<double>(values.size());
  double squares = 0;
  for (const float v : values) squares += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

std::optional<double> number_at(const nlohmann::json& json, const char* pointer) {
  const nlohmann::json::json_pointer at(pointer);
  if (!json.contains(at) || !json.at(at).is_number()) return std::nullopt;
  return json.at(at).get<double>();
}

/// Largest |ours - golden|; infinity where one of ours is not a number.
double largest_difference(std::span<const float> ours, std::span<const float> golden) {
  double largest = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    const double difference = std::abs(static_cast<double>(ours[i]) - static_cast<double>(golden[i]));
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest;
}

}  // namespace

GoldenModel load_golden_model(const std::string& safetensors_path, const std::string& json_path) {
  const SafetensorsModel tensors = SafetensorsModel::open(safetensors_path);
  const nlohmann::json json = load_json(json_path);
  GoldenModel golden;
  golden.llama_cpp_diff = number_at(json, "/llama_cpp/max_abs_diff_over_std");
  golden.bfloat16_diff = number_at(json, "/observed_noise/bfloat16/max_abs_diff_over_std");
  for (size_t i = 0; tensors.find(cat("prompt", i)) != nullptr; ++i) {
    GoldenModel::Prompt prompt;
    prompt.tokens.prompt = golden_tokens(tensors, safetensors_path, cat("prompt", i));
    prompt.tokens.continuation = golden_tokens(tensors, safetensors_path, cat("greedy", i));
    prompt.logits = golden_floats(tensors, safetensors_path, cat("logits", i));
    prompt.margins = golden_floats(tensors, safetensors_path, cat("greedy_margin", i));
    if (prompt.tokens.prompt.empty() || prompt.logits.empty() ||
        prompt.logits.size() % prompt.tokens.prompt.size() != 0 ||
        prompt.margins.size() != prompt.tokens.continuation.size()) {
      throw LoadError(safetensors_path, cat("prompt", i, ": shapes of prompt, logits and greedy do not fit together"));
    }
    prompt.logits_std = standard_deviation(prompt.logits);
    golden.prompts.push_back(std::move(prompt));
  }
  if (golden.prompts.empty()) throw LoadError(safetensors_path, "prompt0: missing tensor");
  return golden;
}

std::optional<double> golden_tolerance(const GoldenModel& golden, Numerics numerics) noexcept {
  if (numerics == Numerics::kExact) return kExactTolerance;
  if (golden.llama_cpp_diff && *golden.llama_cpp_diff > kExactTolerance) return 2 * *golden.llama_cpp_diff;
  if (golden.bfloat16_diff) return 3 * *golden.bfloat16_diff;
  return std::nullopt;
}

GoldenOutcome run_golden_model(const std::string& name, const GoldenModel& golden, const ModelFiles& files,
                               const GoldenSetup& setup) {
  GoldenOutcome outcome{.name = name, .setup = setup_text(setup)};
  const std::optional<double> tolerance = golden_tolerance(golden, setup.numerics);
  if (!tolerance) {
    outcome.verdict = Verdict::kNotTried;
    outcome.reason = "the golden has no observed_noise to measure these numerics by";
    return outcome;
  }
  std::vector<FedTokens> sequences;
  for (const GoldenModel::Prompt& prompt : golden.prompts) sequences.push_back(prompt.tokens);
  const std::unique_ptr<Engine> engine = golden_engine(files, setup, sequences);
  const std::vector<FedLogits> logits = feed(*engine, setup, sequences);
  outcome.logits_hash = hash_of(logits);

  double error = 0;
  double error_over_std = 0;
  for (size_t i = 0; i < golden.prompts.size(); ++i) {
    const GoldenModel::Prompt& prompt = golden.prompts[i];
    const auto golden_width = static_cast<int64_t>(prompt.logits.size() / prompt.tokens.prompt.size());
    if (logits[i].width != golden_width) {
      throw Error(ErrorCode::kCorrupt,
                  cat(logits[i].width, " logits a token, the golden has ", golden_width, ": another model?"));
    }
    const double difference = largest_difference(logits[i].data, prompt.logits);
    error = std::max(error, difference);
    error_over_std = std::max(error_over_std, difference / prompt.logits_std);
  }
  outcome.difference = error_over_std;

  int64_t checked = 0;
  int64_t equal = 0;
  for (size_t i = 0; i < golden.prompts.size(); ++i) {
    const GoldenModel::Prompt& prompt = golden.prompts[i];
    for (size_t step = 0; step < prompt.tokens.continuation.size(); ++step) {
      const bool is_clear = setup.numerics == Numerics::kExact || static_cast<double>(prompt.margins[step]) > 2 * error;
      if (!is_clear) continue;
      ++checked;
      const auto row = static_cast<int64_t>(prompt.tokens.prompt.size() - 1 + step);
      const bool matches = best_token(logits[i].row(row)) == prompt.tokens.continuation[step];
      equal += matches ? 1 : 0;
      if (!matches && outcome.reason.empty()) {
        outcome.reason = cat("prompt", i, ", step ", step, ": best token ", best_token(logits[i].row(row)),
                             ", expected ", prompt.tokens.continuation[step]);
      }
    }
  }
  outcome.matches = cat(equal, "/", checked, " greedy");
  if (error_over_std > *tolerance) {
    outcome.reason = fmt::format("difference {:.3g} is above {:.3g}", error_over_std, *tolerance);
  }
  if (!outcome.reason.empty()) outcome.verdict = Verdict::kFailed;
  return outcome;
}

}  // namespace headrace
