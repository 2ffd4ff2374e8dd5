#pragma once

#include <cstdint>
#include <vector>

#include "arch/arch_spec.h"

namespace headrace {

/// The units of placement that a stage holds: a contiguous part of embedding, layers, output.
struct StageUnits {
  bool embedding = false;
  int32_t first_layer = 0;
  int32_t end_layer = 0;
  bool output = false;

  [[nodiscard]] int32_t num_layers() const noexcept { return end_layer - first_layer; }
  /// Whether the stage needs the tensor. The output projection of a tied model is the embedding's matrix.
  [[nodiscard]] bool holds(const ArchSpec& spec, const TensorSpec& tensor) const noexcept;
  bool operator==(const StageUnits&) const = default;
};

/// All units in one stage.
[[nodiscard]] StageUnits whole_model(const ArchSpec& spec) noexcept;
/// Cuts the layers into `stages` nearly equal parts (1 <= stages <= layers), the embedding with the first, the output
/// with the last.
[[nodiscard]] std::vector<StageUnits> even_cut(const ArchSpec& spec, int32_t stages);

}  // namespace headrace
