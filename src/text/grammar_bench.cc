// What grammars cost for a model's vocabulary: the vocabulary's tree (once), compiling, copying, and a mask and a step
// for each token of texts that fit. grammar_bench MODEL [ROUNDS]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"
#include "files/model_files.h"
#include "text/gguf_vocab.h"
#include "text/grammar.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

double micros_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Times {
  std::vector<double> micros;
  void print(std::string_view name) {
    std::ranges::sort(micros);
    const auto at = [&](double share) {
      return micros[static_cast<size_t>(share * static_cast<double>(micros.size() - 1))];
    };
    const double mean = std::accumulate(micros.begin(), micros.end(), 0.0) / static_cast<double>(micros.size());
    fmt::print("  {:10} mean {:7.1f}  p50 {:7.1f}  p90 {:7.1f}  max {:7.1f} us  ({})\n", name, mean, at(0.5), at(0.9),
               micros.back(), micros.size());
  }
};

struct Case {
  std::string name;
  StructuredOutput spec;
  std::string text;
};

std::vector<Case> cases() {
  return {
      {"JSON schema",
       JsonSchemaOutput{R"({"type": "object", "required": ["name", "age", "tags"], "additionalProperties": false,
          "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "about": {"type": "string"},
                         "tags": {"type": "array", "items": {"type": "string", "maxLength": 20}}}})"},
       R"({"name": "Ada Lovelace", "age": 36, "about": "She wrote the first program for a machine that was never built.",
  "tags": ["mathematics", "engines", "poetry"]})"},
      {"JSON object", JsonObjectOutput{},
       R"({"city": "Oslo", "sizes": [1, 2.5, 300], "nested": {"open": true, "note": "closed on Mondays in winter"}})"},
      {"regex", RegexOutput{R"([A-Z][a-z]+( [a-z]+){3,40}\.)"},
       "The quick brown fox jumps over the lazy dog and runs into the deep dark forest."},
      {"lark",
       GrammarOutput{"start: sum\nsum: product ((\"+\" | \"-\") product)*\nproduct: atom ((\"*\" | \"/\") atom)*\n"
                     "atom: /[0-9]+/ | NAME | \"(\" sum \")\"\nNAME: /[a-z_]+/\n%ignore / /"},
       "(alpha + 12) * beta / (gamma - 7 * (delta + 100)) - epsilon * 3"},
  };
}

void measure(const Case& c, const GrammarFactory& factory, const Tokenizer& tokenizer, int rounds) {
  Times compile, copy, mask, step;
  std::vector<uint32_t> bits((static_cast<size_t>(tokenizer.vocab_size()) + 31) / 32);
  const std::vector<TokenId> tokens = tokenizer.encode(c.text);
  for (int round = 0; round < rounds; ++round) {
    auto start = Clock::now();
    GrammarMatcher matcher = factory.compile(c.spec);
    compile.micros.push_back(micros_since(start));
    for (const TokenId token : tokens) {
      start = Clock::now();
      matcher.compute_mask(bits);
      mask.micros.push_back(micros_since(start));
      start = Clock::now();
      HR_CHECK(matcher.accept(token), c.name, " does not allow ", tokenizer.token_bytes(token));
      step.micros.push_back(micros_since(start));
    }
    HR_CHECK(matcher.may_end(), c.name, ": not at an end");
    start = Clock::now();
    const GrammarMatcher other = matcher;
    copy.micros.push_back(micros_since(start));
  }
  fmt::print("{}, {} tokens\n", c.name, tokens.size());
  compile.print("compile");
  mask.print("mask");
  step.print("accept");
  copy.print("copy");
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  using namespace headrace;
  if (argc < 2) {
    fmt::print(stderr, "grammar_bench MODEL.gguf [ROUNDS]\n");
    return 2;
  }
  const Tokenizer tokenizer = Tokenizer::from_gguf(argv[1], vocab_from_gguf(open_model(argv[1]).metadata()));
  const auto start = Clock::now();
  const GrammarFactory factory(tokenizer, tokenizer.end_ids());
  fmt::print("{} tokens, tree and slices {:.0f} ms\n", tokenizer.vocab_size(), micros_since(start) / 1000);
  for (const Case& c : cases()) measure(c, factory, tokenizer, argc > 2 ? std::atoi(argv[2]) : 20);
  return 0;
}
