#include "tensor/dtype.h"

#include <array>

#include "base/check.h"

namespace headrace {
namespace {

// Numbers and sizes: the GGUF specification, section "Tensor info" (ggml_type), and ggml's block structs.
constexpr std::array kInfos{
    DTypeInfo{DType::kF32, "F32", 1, 4, 0},
    DTypeInfo{DType::kF16, "F16", 1, 2, 1},
    DTypeInfo{DType::kBF16, "BF16", 1, 2, 30},
    DTypeInfo{DType::kF64, "F64", 1, 8, 28},
    DTypeInfo{DType::kI8, "I8", 1, 1, 24},
    DTypeInfo{DType::kI16, "I16", 1, 2, 25},
    DTypeInfo{DType::kI32, "I32", 1, 4, 26},
    DTypeInfo{DType::kI64, "I64", 1, 8, 27},
    DTypeInfo{DType::kU8, "U8", 1, 1, -1},
    DTypeInfo{DType::kBool, "BOOL", 1, 1, -1},
    DTypeInfo{DType::kF8E4M3, "F8_E4M3", 1, 1, -1},
    DTypeInfo{DType::kF8E5M2, "F8_E5M2", 1, 1, -1},
    DTypeInfo{DType::kQ4_0, "Q4_0", 32, 18, 2},
    DTypeInfo{DType::kQ4_1, "Q4_1", 32, 20, 3},
    DTypeInfo{DType::kQ5_0, "Q5_0", 32, 22, 6},
    DTypeInfo{DType::kQ5_1, "Q5_1", 32, 24, 7},
    DTypeInfo{DType::kQ8_0, "Q8_0", 32, 34, 8},
    DTypeInfo{DType::kQ8_1, "Q8_1", 32, 36, 9},
    DTypeInfo{DType::kQ2_K, "Q2_K", 256, 84, 10},
    DTypeInfo{DType::kQ3_K, "Q3_K", 256, 110, 11},
    DTypeInfo{DType::kQ4_K, "Q4_K", 256, 144, 12},
    DTypeInfo{DType::kQ5_K, "Q5_K", 256, 176, 13},
    DTypeInfo{DType::kQ6_K, "Q6_K", 256, 210, 14},
    DTypeInfo{DType::kQ8_K, "Q8_K", 256, 292, 15},
    DTypeInfo{DType::kIQ1_S, "IQ1_S", 256, 50, 19},
    DTypeInfo{DType::kIQ1_M, "IQ1_M", 256, 56, 29},
    DTypeInfo{DType::kIQ2_XXS, "IQ2_XXS", 256, 66, 16},
    DTypeInfo{DType::kIQ2_XS, "IQ2_XS", 256, 74, 17},
    DTypeInfo{DType::kIQ2_S, "IQ2_S", 256, 82, 22},
    DTypeInfo{DType::kIQ3_XXS, "IQ3_XXS", 256, 98, 18},
    DTypeInfo{DType::kIQ3_S, "IQ3_S", 256, 110, 21},
    DTypeInfo{DType::kIQ4_NL, "IQ4_NL", 32, 18, 20},
    DTypeInfo{DType::kIQ4_XS, "IQ4_XS", 256, 136, 23},
    DTypeInfo{DType::kTQ1_0, "TQ1_0", 256, 54, 34},
    DTypeInfo{DType::kTQ2_0, "TQ2_0", 256, 66, 35},
    DTypeInfo{DType::kMXFP4, "MXFP4", 32, 17, 39},
    DTypeInfo{DType::kNVFP4, "NVFP4", 64, 36, 40},
};

constexpr bool rows_in_enum_order() {
  for (size_t i = 0; i < kInfos.size(); ++i) {
    if (static_cast<size_t>(kInfos[i].dtype) != i) return false;
  }
  return true;
}
static_assert(rows_in_enum_order());

}  // namespace

const DTypeInfo& dtype_info(DType dtype) noexcept { return kInfos[static_cast<size_t>(dtype)]; }

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (const DTypeInfo& info : kInfos) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_ggml(uint32_t ggml_type) noexcept {
  for (const DTypeInfo& info : kInfos) {
    if (info.ggml_type >= 0 && static_cast<uint32_t>(info.ggml_type) == ggml_type) return info.dtype;
  }
  return std::nullopt;
}

}  // namespace headrace
