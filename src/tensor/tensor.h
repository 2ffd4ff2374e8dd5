#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace headrace {

/// Sizes, slowest dimension first (a matrix is {rows, columns}); the last one is contiguous.
using Shape = std::vector<int64_t>;
[[nodiscard]] std::string shape_text(const Shape& shape);  ///< "[544,64]"

/// Number of elements, or -1 where the product overflows or a size is negative.
[[nodiscard]] int64_t num_elements(const Shape& shape) noexcept;

/// Bytes of a tensor; -1 where they overflow or the last size is no multiple of the block.
[[nodiscard]] int64_t tensor_bytes(DType dtype, const Shape& shape) noexcept;

/// A tensor's bytes on the host, borrowed (from a file mapping, say): row-major, rows not padded.
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  std::span<const std::byte> bytes;  ///< tensor_bytes(dtype, shape) of them; no alignment promised
};

}  // namespace headrace
