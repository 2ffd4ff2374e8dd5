#include "ops/bf16_pairs_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/byte_order.h"
#include "base/check.h"
#include "base/half.h"
#include "ops/weight_layout.h"

namespace headrace {
namespace {

constexpr size_t kBlockPairs = kBf16BlockK / 2;

/// f16 bits to the nearest bf16, without branches so that the loop over a block becomes vectors: an exponent moved by
/// multiplying is exact for subnormals too.
uint16_t bf16_of_f16(uint16_t h) noexcept {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7fffu;
  uint32_t bits = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
  bits |= magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  bits |= magnitude > 0x7c00u ? 0x400000u : 0u;  // a quiet NaN
  const uint32_t half = magnitude >= 0x7c00u ? 0u : 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>((bits + half + sign) >> 16);
}

/// Values [first, first + 32) of a row, as bf16 in pairs; zeros from k on.
std::array<uint32_t, kBlockPairs> block_of_row(DType dtype, const std::byte* row, int64_t first, int64_t k) noexcept {
  std::array<uint16_t, kBf16BlockK> values{};
  const auto bytes = static_cast<size_t>(std::min(kBf16BlockK, k - first)) * 2;
  std::memcpy(values.data(), row + first * 2, bytes);
  if (dtype == DType::kF16) {
    for (uint16_t& v : values) v = bf16_of_f16(v);
  }
  return std::bit_cast<std::array<uint32_t, kBlockPairs>>(values);
}

}  // namespace

void pack_bf16_group(DType dtype, const std::byte* rows, int64_t neurons, int64_t k, std::byte* group) noexcept {
  HR_DCHECK(dtype == DType::kBF16 || dtype == DType::kF16, dtype_name(dtype));
  static_assert(std::endian::native == std::endian::little);  // the file's numbers are copied as they are
  std::array<std::array<uint32_t, kBlockPairs>, kNeuronGroup> block{};
  for (int64_t first = 0; first < k; first += kBf16BlockK) {
    for (int64_t j = 0; j < neurons; ++j) {
      block[static_cast<size_t>(j)] = block_of_row(dtype, rows + j * k * 2, first, k);
    }
    for (size_t pair = 0; pair < kBlockPairs; ++pair, group += kBf16PairBytes) {
      std::array<uint32_t, kNeuronGroup> side_by_side;
      for (size_t j = 0; j < kNeuronGroup; ++j) side_by_side[j] = block[j][pair];
      std::memcpy(group, side_by_side.data(), kBf16PairBytes);
    }
  }
}

void unpack_bf16_neuron(const std::byte* group, int64_t neuron, int64_t first, int64_t count, float* out) noexcept {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t k = first + i;
    out[i] = bf16_to_f32(load_le<uint16_t>(group + k / 2 * kBf16PairBytes + neuron * 4 + k % 2 * 2));
  }
}

}  // namespace headrace
