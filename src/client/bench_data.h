#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/server_tokens.h"

namespace headrace::client {

/// One request to be sent.
struct BenchPrompt {
  std::string text;
  int64_t prompt_tokens = 0;  ///< as counted or estimated before it is sent
  int64_t max_tokens = 0;
  double arrival = 0;  ///< of a recorded load
  bool operator==(const BenchPrompt&) const = default;
};

enum class LengthKind {
  kUniform,  ///< from length * (1 - range) to length * (1 + range), both included, as `vllm bench serve`
  kNormal,   ///< standard deviation range * length, as the benchmarks of DeepSpeed-MII with range 0.3
};

/// Which requests are made. Names and meanings of the fields are those of `vllm bench serve`, where it has them.
struct DataSpec {
  std::string name = "random";  ///< random, sharegpt, prefix_repetition, text, custom, trace
  std::string path;             ///< of all but the first and third
  int64_t num_prompts = 1000;
  uint64_t seed = 0;
  int64_t random_input_len = 1024, random_output_len = 128, random_prefix_len = 0;
  double random_range_ratio = 0;
  LengthKind lengths = LengthKind::kUniform;
  int64_t max_input_len = 1 << 20;
  int64_t sharegpt_output_len = 0;  ///< 0: the length of the answer in the file
  int64_t custom_output_len = 256;  ///< where the file says nothing
  int64_t prefix_len = 256, suffix_len = 256, num_prefixes = 10, repetition_output_len = 128;
  std::string salt_words;      ///< text before each prompt, part of its length
  std::function<bool()> stop;  ///< true: no more prompts are made
  std::function<void(size_t done, size_t total)> progress;
};

/// The same prompts for the same spec and tokenizer. `arrival` is set for traces only. Fewer than num_prompts where
/// a file of lines has no more. Throws Error naming file and line.
[[nodiscard]] std::vector<BenchPrompt> make_prompts(const DataSpec& spec, ServerTokens& tokenizer);

/// One function a kind, each in its own file.
[[nodiscard]] std::vector<BenchPrompt> random_prompts(const DataSpec& spec, ServerTokens& tokenizer);
[[nodiscard]] std::vector<BenchPrompt> prefix_repetition_prompts(const DataSpec& spec, ServerTokens& tokenizer);
[[nodiscard]] std::vector<BenchPrompt> text_window_prompts(const DataSpec& spec, ServerTokens& tokenizer);
[[nodiscard]] std::vector<BenchPrompt> sharegpt_prompts(const DataSpec& spec, ServerTokens& tokenizer);
[[nodiscard]] std::vector<BenchPrompt> json_lines_prompts(const DataSpec& spec, ServerTokens& tokenizer);

/// Called after each prompt that is made. Throws Error where the user has stopped the making.
void note_progress(const DataSpec& spec, size_t done);

/// Lengths of request `index`, prompt first.
struct Lengths {
  int64_t input = 0, output = 0;
};
[[nodiscard]] Lengths random_lengths(const DataSpec& spec, int64_t index);

/// Word `position` of random text number `item`.
[[nodiscard]] std::string_view random_word(uint64_t seed, int64_t item, int64_t position);

/// `salt` before `text`, with a space between where both are there.
[[nodiscard]] std::string with_salt(std::string_view salt, std::string_view text);

}  // namespace headrace::client
