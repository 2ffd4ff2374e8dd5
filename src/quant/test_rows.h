#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "quant/format.h"

/// Inputs that the tests of this room share.
namespace headrace::quant {

/// Bytes that `num_elems` elements of a format take.
[[nodiscard]] inline size_t row_bytes(const BlockFormat& format, int64_t num_elems) {
  const DTypeInfo& info = dtype_info(format.dtype);
  return static_cast<size_t>(num_elems / info.block_elems * info.block_bytes);
}

/// Rows of 512 elements of different nature: normal, shifted to either side, constant, zero, with outliers, sparse,
/// tiny, large, and sub-blocks of very different size.
[[nodiscard]] inline std::vector<std::vector<float>> rows_of_all_kinds(uint32_t seed) {
  constexpr size_t kElems = 512;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> base(kElems);
  for (float& x : base) x = normal(random);
  const auto map = [&](auto f) {
    std::vector<float> row(kElems);
    for (size_t i = 0; i < kElems; ++i) row[i] = f(base[i], i);
    return row;
  };
  return {
      base,
      map([](float x, size_t) { return 0.1f * x + 3; }),
      map([](float x, size_t) { return 0.1f * x - 3; }),
      map([](float, size_t) { return 0.7f; }),
      map([](float, size_t) { return -0.7f; }),
      map([](float, size_t) { return 0.0f; }),
      map([](float x, size_t i) { return i % 37 == 0 ? 60 * x : x; }),
      map([](float x, size_t i) { return i % 19 == 0 ? x : 0; }),
      map([](float x, size_t) { return 1e-5f * x; }),
      map([](float x, size_t) { return 500 * x; }),  // NVFP4 ends at 2688
      map([](float x, size_t i) { return i / 16 % 3 == 0 ? x : 0.003f * x; }),
      map([](float, size_t i) { return static_cast<float>(i) / 256 - 1; }),
  };
}

}  // namespace headrace::quant
