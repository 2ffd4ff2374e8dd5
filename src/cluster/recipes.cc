#include "cluster/recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "base/error.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "quant/format.h"

namespace headrace::cluster {
namespace {

std::set<std::string> split(const std::string& text) {
  std::set<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(", ", begin), text.size());
    parts.insert(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return parts;
}

/// What `all` has and `others` lack.
std::string rest_text(const std::set<std::string>& all, const std::set<std::string>& others) {
  std::vector<std::string> rest;
  std::ranges::set_difference(all, others, std::back_inserter(rest));
  return rest.empty() ? "nothing else" : fmt::to_string(fmt::join(rest, ", "));
}

}  // namespace

std::string recipes_text(Numerics numerics) {
  std::set<std::string> names(kAttentionRecipes.begin(), kAttentionRecipes.end());
  names.emplace(kActivationRecipe);
  for (const BlockFormat* format : all_formats()) {
    for (const MatmulRecipe* recipe :
         {matmul_recipe(numerics, format->dtype), output_recipe(numerics, format->dtype)}) {
      if (recipe != nullptr) names.insert(recipe_text(*recipe));
    }
  }
  return fmt::to_string(fmt::join(names, ", "));
}

std::optional<std::string> recipe_obstacle(const NodeDescription& worker, Numerics numerics, Isa isa) {
  const std::set<std::string> theirs = split(worker.recipes[static_cast<size_t>(numerics)]);
  const std::set<std::string> ours = split(recipes_text(numerics));
  const std::string_view name = numerics_name(numerics);
  if (theirs != ours) {
    return cat("computes ", name, " numbers by ", printable(rest_text(theirs, ours)), ", this is ",
               rest_text(ours, theirs), "; use builds of the same recipes on all machines");
  }
  if (numerics == Numerics::kFastest && worker.isa != isa_name(isa)) {
    return cat("has compute class ", printable(worker.isa), ", this is ", isa_name(isa),
               "; for --numerics fastest give all machines one --isa, or use --numerics portable");
  }
  return std::nullopt;
}

}  // namespace headrace::cluster
