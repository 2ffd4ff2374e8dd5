// What choosing a token costs, for vocabularies of two sizes: microseconds a row, median of many, on one thread. Logits
// are normal with a deviation of 3 and one peak, as a model's are. sampler_bench [ISA]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string_view>
#include <vector>

#include "sample/sampler.h"

namespace headrace {
namespace {

std::vector<std::vector<float>> random_rows(int32_t vocab_size, int rows) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<std::vector<float>> logits(static_cast<size_t>(rows));
  for (std::vector<float>& row : logits) {
    row.resize(static_cast<size_t>(vocab_size));
    for (float& logit : row) logit = normal(random);
    row[random() % row.size()] = 15;
  }
  return logits;
}

struct Setting {
  std::string_view name;
  SamplingParams params;
};

void measure(int32_t vocab_size) {
  constexpr int kRows = 8, kRounds = 60;
  const std::vector<std::vector<float>> logits = random_rows(vocab_size, kRows);
  std::vector<TokenId> prompt(1000);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(i * 37 % static_cast<size_t>(vocab_size));
  const Setting settings[]{
      {"greedy", {.temperature = 0}},
      {"temperature 0.8", {.temperature = 0.8f}},
      {"temperature 0.8, top-p 0.9, top-k 50", {.temperature = 0.8f, .top_k = 50, .top_p = 0.9f}},
      {"temperature 0.8, top-p 0.9", {.temperature = 0.8f, .top_p = 0.9f}},
      {"temperature 0.8, min-p 0.05", {.temperature = 0.8f, .min_p = 0.05f}},
      {"greedy, repetition penalty 1.1", {.temperature = 0, .repetition_penalty = 1.1f}},
  };
  Sampler sampler(vocab_size);
  uint64_t sum = 0;
  for (const Setting& setting : settings) {
    SamplingState state(setting.params, 1, 0, prompt);
    std::vector<double> micros;
    for (int i = 0; i < kRows * kRounds; ++i) {
      const auto start = std::chrono::steady_clock::now();
      sum += static_cast<uint64_t>(sampler.sample(logits[static_cast<size_t>(i % kRows)], state, i));
      micros.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::ranges::sort(micros);
    fmt::print("{:7} {:38} {:8.1f} us\n", vocab_size, setting.name, micros[micros.size() / 2]);
  }
  fmt::print("(sum of tokens {})\n", sum);
}

}  // namespace
}  // namespace headrace

int main() {
  for (const int32_t vocab_size : {49152, 128256}) headrace::measure(vocab_size);
  return 0;
}
