#include "client/bench_data.h"

#include <algorithm>
#include <cmath>

#include "base/cat.h"
#include "base/error.h"
#include "client/draws.h"
#include "client/words.h"

namespace headrace::client {
namespace {

int64_t random_length(const DataSpec& spec, int64_t mean, int64_t index, int64_t draw) {
  const Draws draws{.seed = spec.seed, .kind = DrawKind::kLengths};
  const auto around = static_cast<double>(mean);
  if (spec.lengths == LengthKind::kNormal) {
    return std::max<int64_t>(1, std::llround(around * (1 + spec.random_range_ratio * draws.normal(index, draw))));
  }
  const auto least = static_cast<int64_t>(std::floor(around * (1 - spec.random_range_ratio)));
  const auto most = static_cast<int64_t>(std::ceil(around * (1 + spec.random_range_ratio)));
  return std::max<int64_t>(1, draws.integer(least, most, index, draw));
}

}  // namespace

Lengths random_lengths(const DataSpec& spec, int64_t index) {
  return {.input = std::min(spec.max_input_len, random_length(spec, spec.random_input_len, index, 0)),
          .output = random_length(spec, spec.random_output_len, index, 1)};
}

void note_progress(const DataSpec& spec, size_t done) {
  if (spec.stop && spec.stop()) throw Error(ErrorCode::kUnavailable, "interrupted while prompts were made");
  if (spec.progress) spec.progress(done, static_cast<size_t>(spec.num_prompts));
}

std::string_view random_word(uint64_t seed, int64_t item, int64_t position) {
  const Draws draws{.seed = seed, .kind = DrawKind::kWords};
  return kWords[static_cast<size_t>(draws.integer(0, static_cast<int64_t>(kWords.size()) - 1, item, position))];
}

std::string with_salt(std::string_view salt, std::string_view text) {
  return cat(salt, salt.empty() || text.empty() ? "" : " ", text);
}

std::vector<BenchPrompt> make_prompts(const DataSpec& spec, ServerTokens& tokenizer) {
  const bool needs_file = spec.name != "random" && spec.name != "prefix_repetition";
  if (needs_file && spec.path.empty()) {
    throw Error(ErrorCode::kInvalidArgument, cat("--dataset-name ", spec.name, " needs a file: --dataset-path"));
  }
  if (spec.name == "random") return random_prompts(spec, tokenizer);
  if (spec.name == "prefix_repetition") return prefix_repetition_prompts(spec, tokenizer);
  if (spec.name == "text") return text_window_prompts(spec, tokenizer);
  if (spec.name == "sharegpt") return sharegpt_prompts(spec, tokenizer);
  if (spec.name == "custom" || spec.name == "trace") return json_lines_prompts(spec, tokenizer);
  throw Error(ErrorCode::kInvalidArgument, cat("--dataset-name: '", printable(spec.name), "' is unknown"));
}

}  // namespace headrace::client
