#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "ops/op_test.h"
#include "ops/weight_layout.h"
#include "quant/format.h"

/// Weights for the operators' tests.
namespace headrace {

enum class WeightBits {
  kEncoded,  ///< uniform values in [-1, 1), encoded where the format can be, else kFinite
  kFinite,   ///< random bits, blocks with infinities or NaN drawn again
  kAny,      ///< random bits
  kExtreme,  ///< blocks of one repeated byte, so that codes and scales lie at their bounds; d and minima 1
};

[[nodiscard]] inline int64_t file_row_bytes(DType dtype, int64_t k) {
  HR_CHECK(k % dtype_info(dtype).block_elems == 0, dtype_name(dtype), ": ", k, " values are no whole number of blocks");
  return k / dtype_info(dtype).block_elems * dtype_info(dtype).block_bytes;
}

/// The rows of a file: [n, k] of `dtype`.
[[nodiscard]] inline std::vector<std::byte> random_file_rows(DType dtype, int64_t n, int64_t k, WeightBits bits,
                                                             uint64_t seed) {
  const DTypeInfo& info = dtype_info(dtype);
  const BlockFormat& format = *find_format(dtype);
  std::vector<std::byte> rows(static_cast<size_t>(n * file_row_bytes(dtype, k)));
  TestRandom random(seed);
  float values[256];
  for (size_t at = 0; at < rows.size(); at += static_cast<size_t>(info.block_bytes)) {
    if (bits == WeightBits::kEncoded && format.encode != nullptr) {
      for (float& v : values) v = random.uniform();
      format.encode(values, info.block_elems, rows.data() + at);
      continue;
    }
    const auto is_finite = [&] {
      format.decode(rows.data() + at, info.block_elems, values);
      return std::all_of(values, values + info.block_elems, [](float v) { return std::isfinite(v); });
    };
    if (bits == WeightBits::kExtreme) {
      constexpr int kBytes[]{0xff, 0x00, 0x80, 0x7f, 0x88, 0x77, 0x8f, 0xf0};
      std::byte* block = rows.data() + at;
      std::fill_n(block, info.block_bytes, static_cast<std::byte>(kBytes[random.below(std::ssize(kBytes))]));
      // The f16 numbers stand at the beginning or at the end of a block.
      const uint16_t ones[]{0x3c00, 0x3c00};
      if (!is_finite()) std::memcpy(block, ones, static_cast<size_t>(std::min(4, info.block_bytes)));
      if (!is_finite() && info.block_bytes > 4) std::memcpy(block + info.block_bytes - 4, ones, 4);
      continue;
    }
    bool finite = false;
    do {
      for (int i = 0; i < info.block_bytes; ++i)
        rows[at + static_cast<size_t>(i)] = static_cast<std::byte>(random.bits());
      finite = is_finite();
    } while (!finite && bits != WeightBits::kAny);
  }
  return rows;
}

/// File rows packed into a layout, and the view of them.
class PackedWeights {
 public:
  PackedWeights(DType dtype, WeightLayout layout, int64_t n, int64_t k, std::span<const std::byte> rows)
      : bytes_(packed_bytes(dtype, layout, n, k)),
        view_{.dtype = dtype, .layout = layout, .n = n, .k = k, .data = bytes_.data()} {
    pack_weights(dtype, layout, rows, n, k, 0, n, bytes_.data());
  }
  [[nodiscard]] const WeightView& view() const noexcept { return view_; }

 private:
  AlignedBytes bytes_;
  WeightView view_;
};

}  // namespace headrace
