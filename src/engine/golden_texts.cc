#include "engine/golden_texts.h"

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

constexpr double kMostDivergence = 0.0028;
constexpr double kLeastMargin = 0.15;
constexpr double kLeastEqual = 57.0 / 60.0;

/// log of the sum of exp.
double log_sum_exp(std::span<const float> logits) {
  const double best = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float v : logits) sum += std::exp(static_cast<double>(v) - best);
  return best + std::log(sum);
}

GoldenTexts::Text text_of(const nlohmann::json& json, const SafetensorsModel& tensors, const std::string& path,
                          size_t index) {
  GoldenTexts::Text text;
  const auto ids = json.at("ids").get<std::vector<TokenId>>();
  const auto from = json.at("scored").at(0).get<int32_t>();
  const auto end = json.at("scored").at(1).get<int32_t>();
  if (from < 0 || end <= from || static_cast<size_t>(end) > ids.size()) {
    throw LoadError(path, cat("texts[", index, "].scored: outside the text"));
  }
  text.tokens.prompt.assign(ids.begin(), ids.begin() + end);
  text.tokens.output_from = from;
  text.scored_rows = end - from;
  text.logits = golden_floats(tensors, path, cat("text", index, ".logits"));
  return text;
}

}  // namespace

bool is_golden_texts(const std::string& json_path) {
  const nlohmann::json json = load_json(json_path);
  return json.contains("texts") && json.contains("chats");
}

GoldenTexts load_golden_texts(const std::string& safetensors_path, const std::string& json_path) {
  const SafetensorsModel tensors = SafetensorsModel::open(safetensors_path);
  const nlohmann::json json = load_json(json_path);
  GoldenTexts golden;
  try {
    for (const auto& text : json.at("texts")) {
      golden.texts.push_back(text_of(text, tensors, safetensors_path, golden.texts.size()));
    }
    for (const auto& chat : json.at("chats")) {
      GoldenTexts::Chat one;
      one.tokens.prompt = chat.at("prompt_ids").get<std::vector<TokenId>>();
      one.tokens.continuation = chat.at("greedy_ids").get<std::vector<TokenId>>();
      one.tokens.output_from = static_cast<int32_t>(one.tokens.prompt.size()) - 1;
      one.margins = chat.at("margin").get<std::vector<double>>();
      if (one.tokens.prompt.empty() || one.margins.size() != one.tokens.continuation.size()) {
        throw LoadError(json_path, cat("chats[", golden.chats.size(), "]: greedy_ids and margin differ in length"));
      }
      golden.chats.push_back(std::move(one));
    }
  } catch (const nlohmann::json::exception& error) {
    throw LoadError(json_path, error.what());
  }
  return golden;
}

double kl_divergence(std::span<const float> p_logits, std::span<const float> q_logits) {
  const double p_sum = log_sum_exp(p_logits);
  const double q_sum = log_sum_exp(q_logits);
  double divergence = 0;
  for (size_t i = 0; i < p_logits.size(); ++i) {
    const double log_p = static_cast<double>(p_logits[i]) - p_sum;
    const double log_q = static_cast<double>(q_logits[i]) - q_sum;
    if (const double p = std::exp(log_p); p > 0) divergence += p * (log_p - log_q);
  }
  return divergence;
}

GoldenOutcome run_golden_texts(const std::string& name, const GoldenTexts& golden, const ModelFiles& files,
                               const GoldenSetup& setup) {
  GoldenOutcome outcome{.name = name, .setup = setup_text(setup)};
  std::vector<FedTokens> sequences;
  for (const GoldenTexts::Text& text : golden.texts) sequences.push_back(text.tokens);
  for (const GoldenTexts::Chat& chat : golden.chats) sequences.push_back(chat.tokens);
  const std::unique_ptr<Engine> engine = golden_engine(files, setup, sequences);
  const std::vector<FedLogits> logits = feed(*engine, setup, sequences);
  outcome.logits_hash = hash_of(logits);

  double divergence = 0;
  int64_t rows = 0;
  int64_t equal_rows = 0;
  for (size_t i = 0; i < golden.texts.size(); ++i) {
    const GoldenTexts::Text& text = golden.texts[i];
    const auto width = static_cast<int64_t>(text.logits.size()) / text.scored_rows;
    if (logits[i].width != width) {
      throw Error(ErrorCode::kCorrupt,
                  cat(logits[i].width, " logits a token, the golden has ", width, ": another model?"));
    }
    for (int64_t r = 0; r < text.scored_rows; ++r, ++rows) {
      const auto want = std::span(text.logits).subspan(static_cast<size_t>(r * width), static_cast<size_t>(width));
      divergence += kl_divergence(want, logits[i].row(r));
      equal_rows += best_token(want) == best_token(logits[i].row(r)) ? 1 : 0;
    }
  }
  divergence /= static_cast<double>(std::max<int64_t>(rows, 1));

  int64_t steps = 0;
  int64_t equal_steps = 0;
  for (size_t i = 0; i < golden.chats.size(); ++i) {
    const GoldenTexts::Chat& chat = golden.chats[i];
    const FedLogits& ours = logits[golden.texts.size() + i];
    for (size_t step = 0; step < chat.margins.size(); ++step) {
      if (chat.margins[step] <= kLeastMargin) continue;
      ++steps;
      const TokenId best = best_token(ours.row(static_cast<int64_t>(step)));
      equal_steps += best == chat.tokens.continuation[step] ? 1 : 0;
      if (best != chat.tokens.continuation[step] && outcome.reason.empty()) {
        outcome.reason =
            cat("chat ", i, ", step ", step, ": best token ", best, ", expected ", chat.tokens.continuation[step]);
      }
    }
  }
  outcome.matches = cat(equal_steps, "/", steps, " chat steps, ", equal_rows, "/", rows, " text rows");
  outcome.detail = fmt::format("KL {:.5f}", divergence);
  if (static_cast<double>(equal_rows) < kLeastEqual * static_cast<double>(rows)) {
    outcome.reason = cat("best token equal in ", equal_rows, " of ", rows, " rows only");
  }
  // Written so that NaN fails.
  if (!(divergence <= kMostDivergence)) {
    outcome.reason = fmt::format("mean KL divergence {:.5f} is above {}", divergence, kMostDivergence);
  }
  if (!outcome.reason.empty()) outcome.verdict = Verdict::kFailed;
  return outcome;
}

}  // namespace headrace
