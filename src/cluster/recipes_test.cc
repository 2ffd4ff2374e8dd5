#include "cluster/recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace::cluster {
namespace {

using testing::HasSubstr;

NodeDescription worker(Isa isa) {
  NodeDescription worker{.build = "b", .isa = std::string(isa_name(isa)), .threads = 1};
  for (const Numerics numerics : kAllNumerics) worker.recipes[static_cast<size_t>(numerics)] = recipes_text(numerics);
  return worker;
}

TEST(Recipes, AreNamedWithTheirVersions) {
  EXPECT_THAT(recipes_text(Numerics::kPortable), HasSubstr("q8x256 v1"));
  EXPECT_THAT(recipes_text(Numerics::kFastest), HasSubstr("r8x256 v1"));
  EXPECT_NE(recipes_text(Numerics::kPortable), recipes_text(Numerics::kFastest));
  for (const Numerics numerics : kAllNumerics) {
    EXPECT_THAT(recipes_text(numerics), HasSubstr(std::string(kAttentionRecipes.front())));
  }
}

TEST(Recipes, EqualOnesMayHaveAnyInstructionSetButForFastest) {
  for (const Numerics numerics : kAllNumerics) {
    EXPECT_EQ(recipe_obstacle(worker(Isa::kAvx2), numerics, Isa::kAvx2), std::nullopt);
    const auto mixed = recipe_obstacle(worker(Isa::kAvx2), numerics, Isa::kAmx);
    EXPECT_EQ(mixed.has_value(), numerics == Numerics::kFastest);
    EXPECT_THAT(mixed.value_or("has compute class avx2, this is amx; for --numerics fastest"),
                HasSubstr("has compute class avx2, this is amx; for --numerics fastest"));
  }
}

TEST(Recipes, OthersAreRefusedWithBothValues) {
  NodeDescription other = worker(Isa::kAvx2);
  std::string& text = other.recipes[static_cast<size_t>(Numerics::kPortable)];
  text.replace(text.find("q8x32 v1"), 8, "q8x32 v9");
  EXPECT_EQ(recipe_obstacle(other, Numerics::kPortable, Isa::kAvx2),
            "computes portable numbers by q8x32 v9, this is q8x32 v1; use builds of the same recipes on all machines");
  EXPECT_EQ(recipe_obstacle(other, Numerics::kExact, Isa::kAvx2), std::nullopt);
  text.clear();
  EXPECT_THAT(recipe_obstacle(other, Numerics::kPortable, Isa::kAvx2).value(), HasSubstr("by nothing else, this is"));
}

}  // namespace
}  // namespace headrace::cluster
