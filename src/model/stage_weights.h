#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "arch/registry.h"
#include "backend/backend.h"
#include "base/compute_pool.h"
#include "model/comm.h"
#include "model/stage_units.h"

namespace headrace {

/// A linear layer: packed matrix, its recipe, and its bias or null.
struct Linear {
  WeightView w;
  const float* bias = nullptr;
  const MatmulRecipe* recipe = nullptr;
};

/// The weights of one layer in device memory, as far as they are the rank's; what the architecture or the stage does
/// not have is null.
struct LayerWeights {
  const float* attn_norm = nullptr;
  Linear q, k, v, attn_output;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  const float* ffn_norm = nullptr;
  Linear gate, up, down;
};

/// Share of the stage's weights that is packed, 0 to 1.
using LoadProgress = std::function<void(double)>;

/// The weights of a stage, packed once at load by the recipe of each tensor's type. The file's pages are dropped as it
/// goes, so that memory holds each weight once. Must not outlive the backend.
class StageWeights {
 public:
  /// Throws LoadError for a missing or misshapen tensor or a type without products, Error(kOutOfMemory).
  /// `tied_table`: embedding() of other weights of this model, which outlive these, for an output projection that is
  /// tied to it; null: packed here. `place`: of which only its share is packed; check_ranks() has passed.
  StageWeights(Backend& backend, ComputePool& pool, const ModelFiles& files, const ArchSpec& spec, Numerics numerics,
               const StageUnits& units, const LoadProgress& progress, const WeightView* tied_table = nullptr,
               RankPlace place = {});

  [[nodiscard]] const StageUnits& units() const noexcept { return units_; }
  [[nodiscard]] RankPlace place() const noexcept { return place_; }
  /// Of rank 0.
  [[nodiscard]] const WeightView& embedding() const noexcept { return embedding_; }
  /// By the layer's number in the model.
  [[nodiscard]] const LayerWeights& layer(int32_t i) const noexcept {
    return layers_[static_cast<size_t>(i - units_.first_layer())];
  }
  [[nodiscard]] const float* output_norm() const noexcept { return output_norm_; }
  [[nodiscard]] const Linear& output() const noexcept { return output_; }

  /// Bytes of device memory, and of the same tensors in the file.
  [[nodiscard]] int64_t packed_bytes() const noexcept { return packed_bytes_; }
  [[nodiscard]] int64_t file_bytes() const noexcept { return file_bytes_; }

 private:
  class Loader;
  StageUnits units_;
  RankPlace place_;
  WeightView embedding_;
  std::vector<LayerWeights> layers_;
  const float* output_norm_ = nullptr;
  Linear output_;
  std::vector<DeviceBuffer> buffers_;
  int64_t packed_bytes_ = 0;
  int64_t file_bytes_ = 0;
};

}  // namespace headrace
