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
constexpr MatmulRecipe kR8x256{
    .name = "r8x256", .version = 1, .layout = WeightLayout::kRequant16, .act = ActForm::kQ8x256Twice};
constexpr MatmulRecipe kBf16x32{
    .name = "bf16x32", .version = 1, .layout = WeightLayout::kBf16Pairs16, .act = ActForm::kBf16};

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
  if (layout == WeightLayout::kBf16Pairs16) return has_bf16_pairs_layout(dtype) ? &kBf16x32 : nullptr;
  const InterleavedFormat* format = find_interleaved(dtype);
  if (format == nullptr) return nullptr;
  if (layout == WeightLayout::kRequant16) return &kR8x256;
  return format->block_elems == kSlabK ? &kQ8x32 : &kQ8x256;
}

const MatmulRecipe* matmul_recipe(Numerics numerics, DType dtype) noexcept {
  if (numerics != Numerics::kExact) {
    if (has_interleaved_layout(dtype)) {
      // Weights of 8 bits lose too much: the small Q8_0 model of the goldens strays beyond twice llama.cpp's own error.
      const bool rounds_weights = numerics == Numerics::kFastest && dtype != DType::kQ8_0;
      return layout_recipe(rounds_weights ? WeightLayout::kRequant16 : WeightLayout::kInterleaved16, dtype);
    }
    const bool rounds_weights = dtype != DType::kBF16;
    if (has_bf16_pairs_layout(dtype) && (numerics == Numerics::kFastest || !rounds_weights)) return &kBf16x32;
  }
  return layout_recipe(WeightLayout::kRows, dtype);
}

const MatmulRecipe* output_recipe(Numerics numerics, DType dtype) noexcept {
  const bool for_many_rows = numerics == Numerics::kFastest && has_interleaved_layout(dtype);
  return matmul_recipe(for_many_rows ? Numerics::kPortable : numerics, dtype);
}

std::string recipe_text(const MatmulRecipe& recipe) { return cat(recipe.name, " v", recipe.version); }

}  // namespace headrace
