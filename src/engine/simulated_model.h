#pragma once

#include <cstdint>
#include <vector>

#include "engine/simulated_machine.h"

namespace headrace {

/// The simulated model: what it keeps for a position (one number a cache group) is made of the token there and of all
/// that it keeps for the earlier positions in sight; what follows is made of the positions in sight, itself included.
/// So a position that is missing, stale, written by another sequence or computed too early changes every later token.
/// All sums are modulo 2^64.
[[nodiscard]] uint64_t simulated_mix(uint64_t value) noexcept;
/// What is kept for a position, of `sums` (one a group) over the earlier positions in sight.
[[nodiscard]] uint64_t simulated_value(TokenId token, int64_t position, size_t group, uint64_t sums) noexcept;
/// One number of the sums of all groups.
[[nodiscard]] uint64_t simulated_join(const std::vector<uint64_t>& sums) noexcept;

/// The reference: one sequence, computed alone, without blocks, chunks or stages.
class SimulatedSequence {
 public:
  explicit SimulatedSequence(const SimulatedMachine& machine);

  /// Appends a token; returns the one that follows it.
  TokenId append(TokenId token);

 private:
  std::vector<int32_t> windows_;  // of each group
  int32_t vocab_size_ = 0;
  int64_t length_ = 0;
  std::vector<uint64_t> sums_;                   // over the positions in sight
  std::vector<std::vector<uint64_t>> in_sight_;  // of each window group, as a ring by position
};

/// The token that follows `tokens`.
[[nodiscard]] TokenId simulated_next(const SimulatedMachine& machine, const std::vector<TokenId>& tokens);

}  // namespace headrace
