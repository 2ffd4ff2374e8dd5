#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// The 16 uneven levels that IQ4_NL and IQ4_XS share. Source: kvalues_iq4nl in ggml-common.h of ggml.
namespace headrace::quant {

inline constexpr std::array<int8_t, 16> kIq4Levels{-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};

/// Code of the level nearest to `value`, the lower of two at equal distance; NaN gives 0.
[[nodiscard]] inline int nearest_iq4_code(float value) noexcept {
  size_t code = 0;
  while (code < 15 && value > 0.5f * static_cast<float>(kIq4Levels[code] + kIq4Levels[code + 1])) ++code;
  return static_cast<int>(code);
}

[[nodiscard]] inline int nearest_iq4_level(float value) noexcept {
  return kIq4Levels[static_cast<size_t>(nearest_iq4_code(value))];
}

/// Code of `level`, which is one of kIq4Levels, or 0 in a block without a scale (there every code means 0).
[[nodiscard]] inline int iq4_code_of(int level) noexcept { return nearest_iq4_code(static_cast<float>(level)); }

}  // namespace headrace::quant
