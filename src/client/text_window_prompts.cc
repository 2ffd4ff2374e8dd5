// Data of the benchmarks of DeepSpeed-MII: windows of one long text, each a word further than the one before.
#include "base/cat.h"
#include "base/error.h"
#include "client/bench_data.h"
#include "client/words.h"
#include "files/json_file.h"

namespace headrace::client {

std::vector<BenchPrompt> text_window_prompts(const DataSpec& spec, ServerTokens& tokenizer) {
  const std::string text = read_text_file(spec.path);
  const std::vector<std::string_view> words = split_words(text);
  if (words.empty()) throw LoadError(spec.path, "no words in it");
  std::vector<BenchPrompt> prompts;
  for (int64_t i = 0; i < spec.num_prompts; ++i) {
    const Lengths lengths = random_lengths(spec, i);
    FittedText fitted = fit_text(tokenizer, spec.salt_words, lengths.input, [&](int64_t position) {
      return words[static_cast<size_t>(i + position) % words.size()];
    });
    prompts.push_back({.text = std::move(fitted.text), .prompt_tokens = fitted.tokens, .max_tokens = lengths.output});
    note_progress(spec, prompts.size());
  }
  return prompts;
}

}  // namespace headrace::client
