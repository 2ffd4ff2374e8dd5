#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace headrace {

/// How often tokens occur in one sequence: an open-addressing table whose size follows the sequence, not the
/// vocabulary.
class TokenCounts {
 public:
  struct Entry {
    TokenId token = -1;  ///< -1: free
    int32_t in_prompt = 0;
    int32_t in_answer = 0;
  };

  /// Makes room for `num_tokens` different tokens, so that adding that many does not allocate.
  void reserve(size_t num_tokens);
  /// `token` is not negative.
  void add_prompt(TokenId token) { ++find_or_add(token).in_prompt; }
  void add_answer(TokenId token) { ++find_or_add(token).in_answer; }
  /// Calls fn(const Entry&) for each token that occurs, in no particular order.
  template <class Fn>
  void for_each(Fn fn) const {
    for (const Entry& entry : entries_) {
      if (entry.token >= 0) fn(entry);
    }
  }

 private:
  Entry& find_or_add(TokenId token);
  [[nodiscard]] size_t slot_of(TokenId token) const noexcept;

  std::vector<Entry> entries_;  // a power of two, at most half full
  size_t used_ = 0;
};

}  // namespace headrace
