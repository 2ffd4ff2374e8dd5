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

/// A sequence for each row, whose last token alone returns an output.
std::vector<SequenceId> start_rows(Engine& engine, const BenchCase& bench, int32_t tokens, int32_t max_len) {
  std::vector<SequenceId> ids;
  for (int32_t row = 0; row < bench.rows; ++row) {
    std::vector<TokenId> prompt;
    for (int32_t i = 0; i < tokens; ++i) prompt.push_back(random_token(engine, int64_t{row} * tokens + i));
    const std::optional<SequenceId> id = engine.start(std::move(prompt), max_len, tokens - 1);
    HR_CHECK(id.has_value(), "the cache was made for all rows");
    ids.push_back(*id);
  }
  return ids;
}

void append_to_each(Engine& engine, const std::vector<SequenceId>& ids, int32_t index) {
  for (const SequenceId id : ids) engine.append(id, random_token(engine, index));
}

void finish_all(Engine& engine, const std::vector<SequenceId>& ids) {
  for (const SequenceId id : ids) engine.finish(id);
}

/// Tokens per second of `measured`, which computes bench.tokens tokens of each row.
template <class Fn>
double rate_of(const BenchCase& bench, const Fn& measured) {
  const auto start = std::chrono::steady_clock::now();
  measured();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return static_cast<double>(bench.tokens) * bench.rows / elapsed.count();
}

double read_prompt(Engine& engine, const BenchCase& bench) {
  const std::vector<SequenceId> ids = start_rows(engine, bench, bench.tokens, bench.tokens);
  const double rate = rate_of(bench, [&] {
    while (engine.step() != nullptr) continue;
  });
  finish_all(engine, ids);
  return rate;
}

/// The sequences have a token that was not computed yet, and have one again afterwards.
double generate(Engine& engine, const BenchCase& bench, const std::vector<SequenceId>& ids) {
  return rate_of(bench, [&] {
    for (int32_t i = 0; i < bench.tokens; ++i) {
      (void)engine.step();
      append_to_each(engine, ids, i);
    }
  });
}

}  // namespace

int32_t bench_length(const BenchCase& bench, int32_t repetitions) {
  const int32_t runs = bench.depth > 0 ? repetitions + 1 : 1;
  return bench.depth + bench.tokens * runs + (bench.kind == BenchCase::Kind::kGenerate ? 1 : 0);
}

std::string bench_name(const BenchCase& bench) {
  return cat(bench.kind == BenchCase::Kind::kPrompt ? "pp" : "tg", bench.tokens,
             bench.depth > 0 ? cat(" @ d", bench.depth) : std::string());
}

std::vector<double> run_bench(Engine& engine, const BenchCase& bench, int32_t repetitions) {
  std::vector<double> rates;
  if (bench.kind == BenchCase::Kind::kPrompt) {
    for (int32_t i = 0; i <= repetitions; ++i) rates.push_back(read_prompt(engine, bench));
  } else if (bench.depth == 0) {
    for (int32_t i = 0; i <= repetitions; ++i) {
      const std::vector<SequenceId> ids = start_rows(engine, bench, 1, bench_length(bench, repetitions));
      rates.push_back(generate(engine, bench, ids));
      finish_all(engine, ids);
    }
  } else {
    const std::vector<SequenceId> ids = start_rows(engine, bench, bench.depth, bench_length(bench, repetitions));
    while (engine.step() != nullptr) continue;
    append_to_each(engine, ids, 0);
    for (int32_t i = 0; i <= repetitions; ++i) rates.push_back(generate(engine, bench, ids));
    finish_all(engine, ids);
  }
  rates.erase(rates.begin());  // it warmed up
  return rates;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace headrace
