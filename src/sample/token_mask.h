#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/ids.h"

namespace headrace {

/// No token: none can be chosen, as all are masked or the logits are not numbers, say.
inline constexpr TokenId kNoToken = -1;

/// A set of tokens: bit i % 32 of word i / 32.
using TokenMask = std::vector<uint32_t>;

inline void add_token(TokenMask& mask, TokenId token) {
  const auto word = static_cast<size_t>(token) / 32;
  if (word >= mask.size()) mask.resize(word + 1);
  mask[word] |= 1u << (token % 32);
}

/// -infinity for each token that is not in the set, those past its end included.
inline void keep_only(std::span<const uint32_t> mask, std::span<float> logits) noexcept {
  constexpr uint32_t kAll = ~0u;
  for (size_t begin = 0; begin < logits.size(); begin += 32) {
    const uint32_t word = begin / 32 < mask.size() ? mask[begin / 32] : 0;
    if (word == kAll) continue;
    const size_t count = logits.size() - begin < 32 ? logits.size() - begin : 32;
    for (size_t i = 0; i < count; ++i) {
      if ((word >> i & 1) == 0) logits[begin + i] = -std::numeric_limits<float>::infinity();
    }
  }
}

}  // namespace headrace
