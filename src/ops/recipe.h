#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "ops/activation.h"
#include "ops/weight_layout.h"

namespace headrace {

/// What the user asks for with --numerics.
enum class Numerics : uint8_t {
  kExact,     ///< weights decoded to f32, f32 activations: the oracle
  kPortable,  ///< quantised weights take int8 activations and exact integer sums, BF16 bf16 activations: the default
  kFastest,   ///< other recipes where they win with many rows, at some cost in accuracy
};
inline constexpr std::array kAllNumerics{Numerics::kExact, Numerics::kPortable, Numerics::kFastest};
[[nodiscard]] std::string_view numerics_name(Numerics numerics) noexcept;
[[nodiscard]] std::optional<Numerics> parse_numerics(std::string_view name) noexcept;

/// How the products with one matrix are made: never chosen by timing, the same for one row and for a thousand.
struct MatmulRecipe {
  std::string_view name;  ///< "f32-lanes16", "q8x32", "q8x256", "r8x256", "bf16x32"
  int version = 1;
  WeightLayout layout = WeightLayout::kRows;
  ActForm act = ActForm::kF32;
};
/// The recipe of weights of `dtype`. nullptr where no product with such weights exists (integers, F64).
[[nodiscard]] const MatmulRecipe* matmul_recipe(Numerics numerics, DType dtype) noexcept;
/// The same for the output projection, which only rows that are sampled get: no recipe for many rows.
[[nodiscard]] const MatmulRecipe* output_recipe(Numerics numerics, DType dtype) noexcept;
/// The recipe of products with weights of `dtype` in `layout`; nullptr where there are none.
[[nodiscard]] const MatmulRecipe* layout_recipe(WeightLayout layout, DType dtype) noexcept;
/// "q8x256 v1"
[[nodiscard]] std::string recipe_text(const MatmulRecipe& recipe);

}  // namespace headrace
