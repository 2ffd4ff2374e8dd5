#include "model/product_recipe.h"

namespace headrace {

const MatmulRecipe* product_recipe(const ArchSpec& spec, const TensorSpec& tensor, Numerics numerics,
                                   DType dtype) noexcept {
  switch (tensor.role) {
    case TensorRole::kVector:
      return nullptr;
    case TensorRole::kEmbedding:
      return spec.tied_output ? output_recipe(numerics, dtype) : nullptr;
    case TensorRole::kMatmul:
      break;
  }
  return tensor.unit == UnitKind::kOutput ? output_recipe(numerics, dtype) : matmul_recipe(numerics, dtype);
}

}  // namespace headrace
