#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace {

/// Element types of tensors: plain numbers and the block formats of GGUF.
enum class DType : uint8_t {  // clang-format off
  kF32, kF16, kBF16, kF64, kI8, kI16, kI32, kI64, kU8, kBool, kF8E4M3, kF8E5M2,
  kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ8_1,
  kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K, kQ8_K,
  kIQ1_S, kIQ1_M, kIQ2_XXS, kIQ2_XS, kIQ2_S, kIQ3_XXS, kIQ3_S, kIQ4_NL, kIQ4_XS,
  kTQ1_0, kTQ2_0, kMXFP4, kNVFP4,
  // clang-format on
};

/// Layout facts of a type: a row of n elements takes n / block_elems * block_bytes bytes, n a multiple of block_elems.
struct DTypeInfo {
  DType dtype;
  std::string_view name;  ///< as GGUF tools print it: "F32", "Q4_K"
  int32_t block_elems;
  int32_t block_bytes;
  int32_t ggml_type;  ///< number in GGUF files, -1 if there is none
};
[[nodiscard]] const DTypeInfo& dtype_info(DType dtype) noexcept;
[[nodiscard]] inline std::string_view dtype_name(DType dtype) noexcept { return dtype_info(dtype).name; }
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name) noexcept;
[[nodiscard]] std::optional<DType> dtype_from_ggml(uint32_t ggml_type) noexcept;

}  // namespace headrace
