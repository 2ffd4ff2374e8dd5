// Data from JSON Lines: prompts {"prompt": "...", "output_tokens": 100}, or recorded loads {"timestamp": 3500,
// "input_length": 812, "output_length": 64} whose timestamps are milliseconds, with the text in "prompt" where it is
// known.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/cat.h"
#include "base/error.h"
#include "client/bench_data.h"
#include "client/json_lines.h"

namespace headrace::client {
namespace {

/// The number under `key`; throws LoadError where there is none that is finite and not negative.
double require_number(const std::string& where, const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) throw LoadError(where, cat("expected a number in '", key, "'"));
  const auto value = found->get<double>();
  if (!std::isfinite(value) || value < 0 || value > 1e15) {
    throw LoadError(where, cat(key, " is ", value, ", expected at least 0"));
  }
  return value;
}

BenchPrompt read_line(const DataSpec& spec, ServerTokens& tokenizer, const std::string& where, std::string_view text,
                      int64_t index) {
  const nlohmann::json line = parse_json_line(where, text);
  const bool is_trace = spec.name == "trace";
  const bool has_text = line.contains("prompt");
  if (has_text && !line["prompt"].is_string()) throw LoadError(where, "expected a text in 'prompt'");
  if (!has_text && !is_trace) throw LoadError(where, "expected a text in 'prompt'");
  BenchPrompt prompt;
  if (has_text) {
    prompt.text = with_salt(spec.salt_words, line["prompt"].get_ref<const std::string&>());
    prompt.prompt_tokens = tokenizer.count(prompt.text);
  } else {
    const auto length = static_cast<int64_t>(require_number(where, line, "input_length"));
    FittedText fitted = fit_text(tokenizer, spec.salt_words, std::max<int64_t>(length, 1),
                                 [&](int64_t i) { return random_word(spec.seed, index, i); });
    prompt.text = std::move(fitted.text);
    prompt.prompt_tokens = fitted.tokens;
  }
  if (is_trace) {
    prompt.arrival = require_number(where, line, "timestamp") * 1e-3;
    prompt.max_tokens = static_cast<int64_t>(require_number(where, line, "output_length"));
  } else {
    prompt.max_tokens = line.contains("output_tokens")
                            ? static_cast<int64_t>(require_number(where, line, "output_tokens"))
                            : spec.custom_output_len;
  }
  prompt.max_tokens = std::max<int64_t>(prompt.max_tokens, 1);
  return prompt;
}

}  // namespace

std::vector<BenchPrompt> json_lines_prompts(const DataSpec& spec, ServerTokens& tokenizer) {
  std::vector<BenchPrompt> prompts;
  for_each_json_line(spec.path, [&](const std::string& where, std::string_view line) {
    if (std::ssize(prompts) < spec.num_prompts) {
      prompts.push_back(read_line(spec, tokenizer, where, line, std::ssize(prompts)));
      note_progress(spec, prompts.size());
    }
  });
  if (prompts.empty()) throw LoadError(spec.path, "no requests in it");
  std::ranges::stable_sort(prompts, {}, &BenchPrompt::arrival);
  const double begin = prompts.front().arrival;
  for (BenchPrompt& prompt : prompts) prompt.arrival -= begin;
  return prompts;
}

}  // namespace headrace::client
