#include "sample/token_counts.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace headrace {

size_t TokenCounts::slot_of(TokenId token) const noexcept {
  const size_t mask = entries_.size() - 1;
  size_t slot = (static_cast<uint64_t>(token) * 0x9E3779B97F4A7C15u >> 32) & mask;
  while (entries_[slot].token >= 0 && entries_[slot].token != token) slot = (slot + 1) & mask;
  return slot;
}

void TokenCounts::reserve(size_t num_tokens) {
  const size_t wanted = std::bit_ceil(std::max<size_t>(16, 2 * num_tokens));
  if (wanted <= entries_.size()) return;
  const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(wanted));
  for (const Entry& entry : old) {
    if (entry.token >= 0) entries_[slot_of(entry.token)] = entry;
  }
}

TokenCounts::Entry& TokenCounts::find_or_add(TokenId token) {
  reserve(used_ + 1);
  Entry& entry = entries_[slot_of(token)];
  if (entry.token < 0) {
    entry.token = token;
    ++used_;
  }
  return entry;
}

}  // namespace headrace
