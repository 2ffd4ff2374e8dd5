#include "ops/recipe.h"

#include <gtest/gtest.h>

#include "ops/matmul.h"

namespace headrace {
namespace {

TEST(MatmulRecipe, EveryWeightTypeHasOneAndATableForIt) {
  for (const BlockFormat* format : all_formats()) {
    for (Numerics numerics : kAllNumerics) {
      const MatmulRecipe* recipe = matmul_recipe(numerics, format->dtype);
      ASSERT_NE(recipe, nullptr) << dtype_name(format->dtype);
      EXPECT_NE(matmul_table(format->dtype, recipe->layout), nullptr) << dtype_name(format->dtype);
    }
  }
}

TEST(MatmulRecipe, NumericsChooseTheRecipe) {
  EXPECT_EQ(recipe_text(*matmul_recipe(Numerics::kPortable, DType::kQ4_K)), "q8x256 v1");
  EXPECT_EQ(recipe_text(*matmul_recipe(Numerics::kPortable, DType::kQ4_1)), "q8x32 v1");
  EXPECT_EQ(recipe_text(*matmul_recipe(Numerics::kPortable, DType::kBF16)), "bf16x32 v1");
  EXPECT_EQ(recipe_text(*matmul_recipe(Numerics::kExact, DType::kBF16)), "f32-lanes16 v1");
  EXPECT_EQ(recipe_text(*matmul_recipe(Numerics::kPortable, DType::kF16)), "f32-lanes16 v1");
  EXPECT_EQ(recipe_text(*matmul_recipe(Numerics::kFastest, DType::kF16)), "bf16x32 v1");
  EXPECT_EQ(recipe_text(*matmul_recipe(Numerics::kFastest, DType::kF32)), "f32-lanes16 v1");
  EXPECT_EQ(recipe_text(*matmul_recipe(Numerics::kPortable, DType::kIQ1_S)), "f32-lanes16 v1");
  EXPECT_EQ(recipe_text(*matmul_recipe(Numerics::kExact, DType::kQ4_K)), "f32-lanes16 v1");
  EXPECT_EQ(matmul_recipe(Numerics::kPortable, DType::kI32), nullptr);
  EXPECT_EQ(matmul_recipe(Numerics::kExact, DType::kF64), nullptr);
  EXPECT_EQ(matmul_table(DType::kF32, WeightLayout::kInterleaved16), nullptr);
  EXPECT_EQ(matmul_table(DType::kF32, WeightLayout::kBf16Pairs16), nullptr);
  EXPECT_EQ(matmul_table(DType::kI32, WeightLayout::kRows), nullptr);
}

TEST(MatmulRecipe, NumericsHaveNames) {
  for (Numerics numerics : kAllNumerics) {
    EXPECT_EQ(parse_numerics(numerics_name(numerics)), numerics);
  }
  EXPECT_EQ(parse_numerics("fast"), std::nullopt);
}

}  // namespace
}  // namespace headrace
