#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "quant/format.h"
#include "tensor/tensor.h"

namespace headrace {

/// How a matrix lies in memory once it is packed for products.
enum class WeightLayout : uint8_t {
  kRows,           ///< as in the file: rows one after the other, padding between rows none
  kInterleaved16,  ///< 16 output neurons side by side, block by block along k (interleaved_layout.h draws it)
  kRequant16,      ///< kInterleaved16 and a scale for 256 k of each neuron (requant.h)
  kBf16Pairs16,    ///< 16 output neurons side by side in bf16, two k at a time (bf16_pairs_layout.h draws it)
};
inline constexpr std::array kAllWeightLayouts{WeightLayout::kRows, WeightLayout::kInterleaved16,
                                              WeightLayout::kRequant16, WeightLayout::kBf16Pairs16};
[[nodiscard]] std::string_view weight_layout_name(WeightLayout layout) noexcept;

/// Output neurons that lie together in a layout: packing and products work on whole groups, the last one padded.
inline constexpr int64_t kNeuronGroup = 16;

/// A packed weight matrix of n output neurons and k inputs; `data` is device memory, 64-byte aligned.
struct WeightView {
  DType dtype = DType::kF32;
  WeightLayout layout = WeightLayout::kRows;
  int64_t n = 0;
  int64_t k = 0;
  const std::byte* data = nullptr;
};

/// Whether `dtype` has the layouts kInterleaved16 and kRequant16: Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 IQ4_NL, Q2_K to Q6_K,
/// IQ4_XS.
[[nodiscard]] bool has_interleaved_layout(DType dtype) noexcept;
/// Whether `dtype` can be packed to pairs of bf16: BF16, and F16 at the price of rounding.
[[nodiscard]] bool has_bf16_pairs_layout(DType dtype) noexcept;
/// Bytes of neurons [0, n) in a layout, the last group padded (kRows needs no padding).
[[nodiscard]] int64_t packed_bytes(DType dtype, WeightLayout layout, int64_t n, int64_t k) noexcept;
/// Packs neurons [first, last) of a matrix whose file rows are `rows` ([n, k] of `dtype`) to their place in `out`
/// (which holds the whole matrix). first is a multiple of kNeuronGroup, so is last unless it is n. Padding is zero.
void pack_weights(DType dtype, WeightLayout layout, std::span<const std::byte> rows, int64_t n, int64_t k,
                  int64_t first, int64_t last, std::byte* out) noexcept;
/// Decodes neuron `row` to f32[k], with the very values that the format's reference decoder gives; F16 that was packed
/// to bf16 gives those rounded.
void unpack_weight_row(const WeightView& w, int64_t row, float* out) noexcept;

}  // namespace headrace
