#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/format.h"

namespace headrace {

/// How decoded blocks differ from a golden.
struct DecodeDifference {
  int64_t mismatches = 0;       ///< elements whose bits differ
  int64_t first_mismatch = -1;  ///< index of the first of them, -1 if there is none
  double largest = 0;           ///< greatest |decoded - expected|; NaN if one of the two is NaN somewhere
};

/// Decodes `blocks` and compares with `expected`, bit for bit. blocks.size() is the number of bytes that
/// expected.size() elements take in this format.
[[nodiscard]] DecodeDifference compare_decoded(const BlockFormat& format, std::span<const std::byte> blocks,
                                               std::span<const float> expected);

}  // namespace headrace
