// Conversations in the format of ShareGPT, chosen as `vllm bench serve` does.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/cat.h"
#include "base/error.h"
#include "client/bench_data.h"
#include "client/draws.h"
#include "files/json_file.h"

namespace headrace::client {
namespace {

std::string value_of(const nlohmann::json& turn) {
  return turn.is_object() && turn.contains("value") && turn["value"].is_string() ? turn["value"].get<std::string>()
                                                                                 : std::string();
}

/// Neither too short to mean anything nor too long for the servers that are compared.
bool is_usable(int64_t prompt, int64_t output, bool output_is_given) {
  constexpr int64_t kShortest = 4, kLongestPrompt = 1024, kLongest = 2048;
  return prompt >= kShortest && (output >= kShortest || output_is_given) && prompt <= kLongestPrompt &&
         prompt + output <= kLongest;
}

}  // namespace

std::vector<BenchPrompt> sharegpt_prompts(const DataSpec& spec, ServerTokens& tokenizer) {
  const nlohmann::json file = load_json(spec.path);
  if (!file.is_array()) throw LoadError(spec.path, "expected a JSON array of conversations");
  std::vector<const nlohmann::json*> conversations;
  for (const auto& entry : file) {
    if (!entry.is_object() || !entry.contains("conversations")) continue;
    if (const auto& turns = entry["conversations"]; turns.is_array() && turns.size() >= 2) {
      conversations.push_back(&turns);
    }
  }
  const Draws draws{.seed = spec.seed, .kind = DrawKind::kOrder};
  for (size_t i = conversations.size(); i > 1; --i) {
    std::swap(
        conversations[i - 1],
        conversations[static_cast<size_t>(draws.integer(0, static_cast<int64_t>(i) - 1, 0, static_cast<int64_t>(i)))]);
  }
  std::vector<BenchPrompt> prompts;
  const bool output_is_given = spec.sharegpt_output_len > 0;
  for (const nlohmann::json* turns : conversations) {
    if (std::ssize(prompts) == spec.num_prompts) break;
    std::string text = with_salt(spec.salt_words, value_of((*turns)[0]));
    const int64_t tokens = tokenizer.count(text);
    const int64_t output = output_is_given ? spec.sharegpt_output_len : tokenizer.count(value_of((*turns)[1]));
    if (is_usable(tokens, output, output_is_given)) {
      prompts.push_back({.text = std::move(text), .prompt_tokens = tokens, .max_tokens = output});
      note_progress(spec, prompts.size());
    }
  }
  if (prompts.empty()) throw LoadError(spec.path, "no conversation of a usable length in it");
  // Fewer conversations than requests: they come again.
  for (size_t i = 0; std::ssize(prompts) < spec.num_prompts; ++i) prompts.push_back(BenchPrompt(prompts[i]));
  return prompts;
}

}  // namespace headrace::client
