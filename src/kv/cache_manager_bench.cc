// What the cache manager costs by the number of sequences: the same a call for any number, but for memory that is
// further away.
#include <fmt/core.h>

#include <chrono>
#include <numeric>

#include "kv/cache_manager.h"

using namespace headrace;

namespace {

template <class Call>
double nanoseconds_each(int32_t calls, const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int32_t n = 0; n < calls; ++n) call(SequenceId{static_cast<uint64_t>(n)}, n);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / calls;
}

void measure(int32_t sequences) {
  constexpr int32_t kPrompt = 1000;
  constexpr int32_t kDecoded = 64;
  const int32_t blocks = sequences * (kPrompt + kDecoded) / 16;
  CacheManager cache({.groups = {{.num_blocks = blocks * 5 / 4}, {.num_blocks = blocks, .window = 256}}});
  double open = 0, step = 0, close = 0;
  for (TokenId round = 0; round < 2; ++round) {  // the second one gives up what the first one left
    std::vector<TokenId> tokens(kPrompt + kDecoded);
    const auto set_tokens = [&](int32_t n) {
      std::iota(tokens.begin(), tokens.end(), (round * sequences + n) * 10000);
    };
    open = nanoseconds_each(sequences, [&](SequenceId id, int32_t n) {
      set_tokens(n);
      cache.open(id, tokens, 0);
      if (!cache.reserve(id, kPrompt)) fmt::print("out of blocks\n");
      cache.submitted(id, tokens, kPrompt);
    });
    step = 0;
    for (int32_t end = kPrompt + 1; end <= kPrompt + kDecoded; ++end) {
      step += nanoseconds_each(sequences, [&](SequenceId id, int32_t n) {
        if (end % 16 == 0) set_tokens(n);  // tokens matter where a block becomes whole
        if (!cache.reserve(id, end)) fmt::print("out of blocks\n");
        cache.submitted(id, tokens, end);
      });
    }
    close = nanoseconds_each(sequences, [&](SequenceId id, int32_t) { cache.close(id); });
  }
  fmt::print("{:>9} {:>15.0f} {:>13.0f} {:>15.0f}\n", sequences, open, step / kDecoded, close);
}

}  // namespace

int main() {
  fmt::print("sequences   prompt [ns]     step [ns]      close [ns]     two groups, prompts of 1000 tokens\n");
  for (const int32_t sequences : {10, 100, 1000, 8000}) measure(sequences);
}
