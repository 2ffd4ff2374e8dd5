#include "quant/golden_quant.h"

#include <bit>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace headrace {

DecodeDifference compare_decoded(const BlockFormat& format, std::span<const std::byte> blocks,
                                 std::span<const float> expected) {
  const DTypeInfo& info = dtype_info(format.dtype);
  const auto num_elems = static_cast<int64_t>(expected.size());
  HR_CHECK(num_elems % info.block_elems == 0, info.name, ": ", num_elems, " elements are no whole blocks");
  HR_CHECK(static_cast<int64_t>(blocks.size()) == num_elems / info.block_elems * info.block_bytes, info.name, ": ",
           blocks.size(), " bytes for ", num_elems, " elements");
  std::vector<float> decoded(expected.size());
  format.decode(blocks.data(), num_elems, decoded.data());

  DecodeDifference difference;
  for (size_t i = 0; i < decoded.size(); ++i) {
    if (std::bit_cast<uint32_t>(decoded[i]) == std::bit_cast<uint32_t>(expected[i])) continue;
    if (difference.mismatches++ == 0) difference.first_mismatch = static_cast<int64_t>(i);
    const double distance = std::abs(static_cast<double>(decoded[i]) - expected[i]);
    if (!(distance <= difference.largest)) difference.largest = distance;
  }
  return difference;
}

}  // namespace headrace
