#include "engine/golden_feed.h"

#include <xxhash.h>

#include <algorithm>
#include <map>

#include "base/check.h"

namespace headrace {
namespace {

/// A sequence in the engine with what it still has to read.
struct Running {
  size_t index = 0;  // in the caller's list
  size_t fed = 0;    // tokens of the continuation
};

void run_to_the_end(Engine& engine, std::span<const FedTokens> sequences, std::map<SequenceId, Running>& running,
                    std::vector<FedLogits>& out) {
  while (const StepResult* result = engine.step()) {
    for (size_t i = 0; i < result->outputs.size(); ++i) {
      const OutputRow& row = result->outputs[i];
      Running& state = running.at(row.sequence);
      const FedTokens& tokens = sequences[state.index];
      FedLogits& logits = out[state.index];
      logits.width = result->width;
      const auto from = result->data.begin() + static_cast<std::ptrdiff_t>(i) * result->width;
      logits.data.insert(logits.data.end(), from, from + result->width);
      const size_t length = tokens.prompt.size() + state.fed;
      if (static_cast<size_t>(row.position) + 1 != length) continue;
      if (state.fed + 1 < tokens.continuation.size()) {
        engine.append(row.sequence, tokens.continuation[state.fed++]);
      } else {
        engine.finish(row.sequence);
      }
    }
  }
}

}  // namespace

std::unique_ptr<Engine> golden_engine(const ModelFiles& files, const GoldenSetup& setup,
                                      std::span<const FedTokens> sequences) {
  size_t longest = 1;
  for (const FedTokens& tokens : sequences)
    longest = std::max(longest, tokens.prompt.size() + tokens.continuation.size());
  EngineConfig config;
  config.isa = setup.isa;
  config.numerics = setup.numerics;
  config.kv_dtype = setup.kv_dtype;
  config.threads = setup.threads;
  config.max_model_len = static_cast<int32_t>(longest);
  config.max_num_seqs = setup.together ? static_cast<int32_t>(sequences.size()) : 1;
  if (setup.chunk_tokens > 0) config.max_chunk_tokens = setup.chunk_tokens;
  if (setup.stages > 1) {
    const ArchSpec spec = make_arch_spec(files);
    config.stages = even_cut(spec, std::min(setup.stages, spec.num_layers()));
  }
  config.backend = setup.backend;
  return std::make_unique<Engine>(files, config);
}

std::vector<FedLogits> feed(Engine& engine, const GoldenSetup& setup, std::span<const FedTokens> sequences) {
  std::vector<FedLogits> out(sequences.size());
  std::map<SequenceId, Running> running;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const FedTokens& tokens = sequences[i];
    const auto max_len = static_cast<int32_t>(tokens.prompt.size() + tokens.continuation.size());
    const std::optional<SequenceId> id = engine.start(tokens.prompt, max_len, tokens.output_from);
    HR_CHECK(id.has_value(), "the cache was made for these sequences");
    running[*id] = {.index = i};
    if (!setup.together) run_to_the_end(engine, sequences, running, out);
  }
  run_to_the_end(engine, sequences, running, out);
  return out;
}

TokenId best_token(std::span<const float> logits) noexcept {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

uint64_t hash_of(std::span<const FedLogits> logits) noexcept {
  uint64_t hash = 0;
  for (const FedLogits& one : logits) hash = XXH64(one.data.data(), one.data.size() * sizeof(float), hash);
  return hash;
}

}  // namespace headrace
