// Data made of random words: alone, or with a few beginnings that return.
#include "client/bench_data.h"

namespace headrace::client {
namespace {

constexpr int64_t kPrefixItems = int64_t{1} << 24;  ///< prefixes are texts of their own, apart from those of requests

std::string prefix_text(ServerTokens& tokenizer, const DataSpec& spec, int64_t tokens, int64_t item) {
  if (tokens <= 0) return spec.salt_words;
  return fit_text(tokenizer, spec.salt_words, tokens,
                  [&](int64_t i) { return random_word(spec.seed, kPrefixItems + item, i); })
      .text;
}

BenchPrompt prompt_after(ServerTokens& tokenizer, const DataSpec& spec, std::string_view prefix, Lengths lengths,
                         int64_t item) {
  FittedText fitted =
      fit_text(tokenizer, prefix, lengths.input, [&](int64_t i) { return random_word(spec.seed, item, i); });
  return {.text = std::move(fitted.text), .prompt_tokens = fitted.tokens, .max_tokens = lengths.output};
}

}  // namespace

std::vector<BenchPrompt> random_prompts(const DataSpec& spec, ServerTokens& tokenizer) {
  const std::string prefix = prefix_text(tokenizer, spec, spec.random_prefix_len, 0);
  std::vector<BenchPrompt> prompts;
  for (int64_t i = 0; i < spec.num_prompts; ++i) {
    Lengths lengths = random_lengths(spec, i);
    lengths.input += spec.random_prefix_len;
    prompts.push_back(prompt_after(tokenizer, spec, prefix, lengths, i));
    note_progress(spec, prompts.size());
  }
  return prompts;
}

std::vector<BenchPrompt> prefix_repetition_prompts(const DataSpec& spec, ServerTokens& tokenizer) {
  std::vector<std::string> prefixes;
  for (int64_t i = 0; i < spec.num_prefixes; ++i) {
    prefixes.push_back(prefix_text(tokenizer, spec, spec.prefix_len, i));
  }
  const Lengths lengths{.input = spec.prefix_len + spec.suffix_len, .output = spec.repetition_output_len};
  std::vector<BenchPrompt> prompts;
  for (int64_t i = 0; i < spec.num_prompts; ++i) {
    const std::string& prefix = prefixes[static_cast<size_t>(i % spec.num_prefixes)];
    prompts.push_back(prompt_after(tokenizer, spec, prefix, lengths, i));
    note_progress(spec, prompts.size());
  }
  return prompts;
}

}  // namespace headrace::client
