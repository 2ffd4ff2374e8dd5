#include "model/stage_units.h"

#include "base/check.h"

namespace headrace {

bool StageUnits::holds(const ArchSpec& spec, const TensorSpec& tensor) const noexcept {
  switch (tensor.unit) {
    case UnitKind::kEmbedding:
      return embedding || (output && spec.tied_output);
    case UnitKind::kLayer:
      return tensor.layer >= first_layer && tensor.layer < end_layer;
    case UnitKind::kOutput:
      return output;
  }
  return false;
}

StageUnits whole_model(const ArchSpec& spec) noexcept {
  return {.embedding = true, .first_layer = 0, .end_layer = spec.num_layers(), .output = true};
}

std::vector<StageUnits> even_cut(const ArchSpec& spec, int32_t stages) {
  HR_CHECK(stages >= 1 && stages <= spec.num_layers(), stages, " stages of ", spec.num_layers(), " layers");
  std::vector<StageUnits> cut;
  for (int32_t i = 0; i < stages; ++i) {
    cut.push_back({.embedding = i == 0,
                   .first_layer = spec.num_layers() * i / stages,
                   .end_layer = spec.num_layers() * (i + 1) / stages,
                   .output = i == stages - 1});
  }
  return cut;
}

}  // namespace headrace
