#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

/// Layout kBf16Pairs16: bf16 weights of 16 neurons side by side, two k at a time. A group of kNeuronGroup neurons is
///
///   64 bytes for k = 0, 1:  w[0][0] w[0][1] | w[1][0] w[1][1] | ... | w[15][0] w[15][1]
///   64 bytes for k = 2, 3:  w[0][2] w[0][3] | ...
///
/// up to bf16_padded_k(k), padding zero; groups one after the other. 16 such rows are what an AMX tile of weights
/// holds, and one row is a vector of 16 even or 16 odd weights after a shift or a mask.
namespace headrace {

/// The recipe's block: rows of activations and of weights are padded to a multiple with zeros.
inline constexpr int64_t kBf16BlockK = 32;
inline constexpr int64_t kBf16PairBytes = 64;  ///< two k of a group
[[nodiscard]] constexpr int64_t bf16_padded_k(int64_t k) noexcept {
  return (k + kBf16BlockK - 1) / kBf16BlockK * kBf16BlockK;
}
[[nodiscard]] constexpr int64_t bf16_group_bytes(int64_t k) noexcept { return bf16_padded_k(k) / 2 * kBf16PairBytes; }

/// Packs `neurons` file rows (1 to 16, of BF16, or of F16: then rounded to bf16) to one group; the other neurons and k
/// past the last become zeros.
void pack_bf16_group(DType dtype, const std::byte* rows, int64_t neurons, int64_t k, std::byte* group) noexcept;
/// `count` weights of neuron 0 to 15 of a group, from k = `first` on; padding may be asked for.
void unpack_bf16_neuron(const std::byte* group, int64_t neuron, int64_t first, int64_t count, float* out) noexcept;

}  // namespace headrace
