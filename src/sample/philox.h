#pragma once

#include <array>
#include <cstdint>

namespace headrace {

/// Philox4x32-10: four random words from a counter and a key, with no state (Salmon, Moraes, Dror, Shaw: "Parallel
/// random numbers: as easy as 1, 2, 3", SC 2011, doi:10.1145/2063384.2063405).
[[nodiscard]] constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                                           std::array<uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;  // the golden ratio
    key[1] += 0xBB67AE85;  // the square root of 3, less 1
  }
  return counter;
}

/// The random number in [0, 1) that decides the token at `position` of continuation `continuation` of a request with
/// `seed`: a multiple of 2^-53. It depends on nothing else, so a sequence that is computed again draws the same.
[[nodiscard]] constexpr double uniform_at(uint64_t seed, uint32_t continuation, int64_t position) noexcept {
  const auto pos = static_cast<uint64_t>(position);
  const std::array<uint32_t, 4> words =
      philox4x32({static_cast<uint32_t>(pos), static_cast<uint32_t>(pos >> 32), continuation, 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t bits = (uint64_t{words[1]} << 32 | words[0]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace headrace
