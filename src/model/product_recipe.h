#pragma once

#include "arch/arch_spec.h"
#include "ops/recipe.h"

namespace headrace {

/// How products with a tensor of a model are made, which is of type `dtype` in the file: the output projection's own
/// way where the tensor is one (the table of embeddings, too, where the model is tied). nullptr where nothing
/// multiplies by it, or no product with the type exists.
[[nodiscard]] const MatmulRecipe* product_recipe(const ArchSpec& spec, const TensorSpec& tensor, Numerics numerics,
                                                 DType dtype) noexcept;

}  // namespace headrace
