#include "engine/simulated_model.h"

namespace headrace {

// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
uint64_t simulated_mix(uint64_t value) noexcept {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

uint64_t simulated_value(TokenId token, int64_t position, size_t group, uint64_t sums) noexcept {
  const auto place = static_cast<uint64_t>(position) << 8 | group;
  return simulated_mix(simulated_mix(sums ^ place) + static_cast<uint64_t>(token));
}

uint64_t simulated_join(const std::vector<uint64_t>& sums) noexcept {
  uint64_t joined = 0;
  for (const uint64_t sum : sums) joined = simulated_mix(joined + sum);
  return joined;
}

SimulatedSequence::SimulatedSequence(const SimulatedMachine& machine)
    : vocab_size_(machine.vocab_size), sums_(machine.groups.size()), in_sight_(machine.groups.size()) {
  for (size_t group = 0; group < machine.groups.size(); ++group) {
    windows_.push_back(machine.groups[group].window);
    in_sight_[group].resize(static_cast<size_t>(windows_[group]));
  }
}

TokenId SimulatedSequence::append(TokenId token) {
  // A window of W lets the token see W - 1 earlier positions: the oldest one leaves before it is computed.
  for (size_t group = 0; group < sums_.size(); ++group) {
    if (windows_[group] > 0) {
      uint64_t& oldest = in_sight_[group][static_cast<size_t>(length_ % windows_[group])];
      sums_[group] -= oldest;
      oldest = 0;
    }
  }
  const uint64_t earlier = simulated_join(sums_);
  for (size_t group = 0; group < sums_.size(); ++group) {
    const uint64_t value = simulated_value(token, length_, group, earlier);
    sums_[group] += value;
    if (windows_[group] > 0) in_sight_[group][static_cast<size_t>(length_ % windows_[group])] = value;
  }
  ++length_;
  return static_cast<TokenId>(simulated_join(sums_) % static_cast<uint64_t>(vocab_size_));
}

TokenId simulated_next(const SimulatedMachine& machine, const std::vector<TokenId>& tokens) {
  SimulatedSequence sequence(machine);
  TokenId next = 0;
  for (const TokenId token : tokens) next = sequence.append(token);
  return next;
}

}  // namespace headrace
