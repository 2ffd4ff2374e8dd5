#pragma once

#include <cstdint>

#include "sample/philox.h"

namespace headrace::client {

/// What random numbers are for: each purpose has its own, so that one more draw of one kind changes no other.
enum class DrawKind : uint32_t { kGap, kLengths, kWords, kOrder, kSalt };

/// Random numbers without a state: the same for the same seed, purpose and place, on every machine.
struct Draws {
  uint64_t seed = 0;
  DrawKind kind = DrawKind::kGap;

  /// In [0, 1).
  [[nodiscard]] double uniform(int64_t item, int64_t draw = 0) const noexcept {
    return uniform_at(seed + static_cast<uint64_t>(kind) * 0x9E3779B97F4A7C15, static_cast<uint32_t>(item), draw);
  }
  /// In [from, to].
  [[nodiscard]] int64_t integer(int64_t from, int64_t to, int64_t item, int64_t draw = 0) const noexcept {
    return from + static_cast<int64_t>(uniform(item, draw) * static_cast<double>(to - from + 1));
  }
  /// Standard normal (Box and Muller, 1958). Uses draws 2 * draw and 2 * draw + 1.
  [[nodiscard]] double normal(int64_t item, int64_t draw = 0) const noexcept;
  /// Gamma distributed with scale 1 (Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS
  /// 26, 2000), exponential for shape 1. shape > 0.
  [[nodiscard]] double gamma(double shape, int64_t item) const noexcept;
};

}  // namespace headrace::client
