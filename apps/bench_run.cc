#include "apps/bench_run.h"

#include <algorithm>
#include <chrono>

#include "base/cat.h"
#include "base/check.h"
#include "sample/philox.h"

namespace headrace {
namespace {

/// Token ids drawn evenly from the vocabulary: which ones they are does not change the work.
TokenId random_token(const Engine& engine, int64_t index) {
  return static_cast<TokenId>(uniform_at(1, 0, index) * engine.spec().vocab_size);
}

std::vector<SequenceId> start_rows(Engine& engine, const BenchCase& bench, int32_t prompt_tokens, int32_t max_len) {
  std::vector<SequenceId> ids;
  for (int32_t row = 0; row < bench.rows; ++row) {
    std::vector<TokenId> tokens;
    for (int32_t i = 0; i < prompt_tokens; ++i)
      tokens.push_back(random_token(engine, int64_t{row} * prompt_tokens + i));
    const std::optional<SequenceId> id = engine.start(std::move(tokens), max_len, prompt_tokens - 1);
    HR_CHECK(id.has_value(), "the cache was made for all rows");
    ids.push_back(*id);
  }
  return ids;
}

double run_once(Engine& engine, const BenchCase& bench) {
  const bool is_prompt = bench.kind == BenchCase::Kind::kPrompt;
  const std::vector<SequenceId> ids = is_prompt ? start_rows(engine, bench, bench.tokens, bench.tokens)
                                                : start_rows(engine, bench, 1, bench.tokens + 1);
  const auto start = std::chrono::steady_clock::now();
  if (is_prompt) {
    while (engine.step() != nullptr) continue;
  } else {
    for (int32_t i = 0; i < bench.tokens; ++i) {
      (void)engine.step();
      for (const SequenceId id : ids) engine.append(id, random_token(engine, i));
    }
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  for (const SequenceId id : ids) engine.finish(id);
  return static_cast<double>(bench.tokens) * bench.rows / elapsed.count();
}

}  // namespace

std::string bench_name(const BenchCase& bench) {
  return cat(bench.kind == BenchCase::Kind::kPrompt ? "pp" : "tg", bench.tokens);
}

std::vector<double> run_bench(Engine& engine, const BenchCase& bench, int32_t repetitions) {
  (void)run_once(engine, bench);
  std::vector<double> rates;
  for (int32_t i = 0; i < repetitions; ++i) rates.push_back(run_once(engine, bench));
  return rates;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace headrace
