#include "ops/recipe.h"

#include <array>

#include "base/cat.h"
#include "ops/interleaved_layout.h"
#include "quant/format.h"

namespace headrace {
namespace {

constexpr MatmulRecipe kF32Lanes16{
    .name = "f32-lanes16", .version = 1, .layout = WeightLayout::kRows, .act = ActForm::kF32};
constexpr MatmulRecipe kQ8x32{
    .name = "q8x32", .version = 1, .layout = WeightLayout::kInterleaved16, .act = ActForm::kQ8x32};
constexpr MatmulRecipe kQ8x256{
    .name = "q8x256", .version = 1, .layout = WeightLayout::kInterleaved16, .act = ActForm::kQ8x256};

constexpr std::array<std::string_view, 3> kNumericsNames{"exact", "portable", "fastest"};

}  // namespace

std::string_view numerics_name(Numerics numerics) noexcept { return kNumericsNames[static_cast<size_t>(numerics)]; }

std::optional<Numerics> parse_numerics(std::string_view name) noexcept {
  for (const Numerics numerics : kAllNumerics) {
    if (numerics_name(numerics) == name) return numerics;
  }
  return std::nullopt;
}

const MatmulRecipe* layout_recipe(WeightLayout layout, DType dtype) noexcept {
  if (find_format(dtype) == nullptr) return nullptr;
  if (layout == WeightLayout::kRows) return &kF32Lanes16;
  const InterleavedFormat* format = find_interleaved(dtype);
  if (format == nullptr) return nullptr;
  return format->block_elems == kSlabK ? &kQ8x32 : &kQ8x256;
}

const MatmulRecipe* matmul_recipe(Numerics numerics, DType dtype) noexcept {
  const bool interleaved = numerics != Numerics::kExact && has_interleaved_layout(dtype);
  return layout_recipe(interleaved ? WeightLayout::kInterleaved16 : WeightLayout::kRows, dtype);
}

std::string recipe_text(const MatmulRecipe& recipe) { return cat(recipe.name, " v", recipe.version); }

}  // namespace headrace
