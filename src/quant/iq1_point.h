#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/iq1_grid.h"

namespace headrace::quant {

/// Eight values 8 g + 1, or 8 g - 1 if `minus`, of codebook point `index` in 0 to 2047.
inline void iq1_point(int index, bool minus, int8_t* q) noexcept {
  const int point = kIq1Grid[static_cast<size_t>(index)];
  for (int j = 0; j < 8; ++j) q[j] = static_cast<int8_t>(8 * (((point >> (2 * j)) & 3) - 1) + (minus ? -1 : 1));
}

}  // namespace headrace::quant
