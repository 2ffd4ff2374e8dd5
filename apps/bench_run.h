#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace headrace {

/// One measurement, as llama-bench defines it: pp reads a prompt of `tokens` tokens, tg generates `tokens` tokens one
/// by one, after `depth` tokens of context that are not measured; `rows` sequences side by side.
struct BenchCase {
  enum class Kind : uint8_t { kPrompt, kGenerate };
  Kind kind = Kind::kPrompt;
  int32_t tokens = 0;
  int32_t rows = 1;
  int32_t depth = 0;
};
/// Tokens of the longest sequence of a measurement.
[[nodiscard]] int32_t bench_length(const BenchCase& bench, int32_t repetitions);
/// "pp512", "tg64 @ d8192"
[[nodiscard]] std::string bench_name(const BenchCase& bench);

/// Tokens per second, all rows together, of each of `repetitions` runs after one that warms up. With a
/// depth the context is read once, and each run goes on where the one before ended.
[[nodiscard]] std::vector<double> run_bench(Engine& engine, const BenchCase& bench, int32_t repetitions);

/// The middle value, or the mean of the two in the middle.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace headrace
