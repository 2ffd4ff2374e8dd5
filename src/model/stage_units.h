#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arch/arch_spec.h"

namespace headrace {

/// A layer is two sublayers, each of which adds to the residual stream: attention, then feed-forward. Layer i's are 2 i
/// and 2 i + 1.
inline constexpr int32_t kSublayers = 2;

/// A number of sublayers as one of layers: 15 are 7.5.
constexpr double in_layers(int32_t sublayers) noexcept { return static_cast<double>(sublayers) / kSublayers; }

/// The units of placement that a stage holds: a contiguous part of embedding, sublayers, output.
struct StageUnits {
  bool embedding = false;
  int32_t first_sublayer = 0;
  int32_t end_sublayer = 0;
  bool output = false;

  [[nodiscard]] int32_t num_sublayers() const noexcept { return end_sublayer - first_sublayer; }
  /// Layers of which the stage has at least one sublayer: [first_layer, end_layer).
  [[nodiscard]] int32_t first_layer() const noexcept { return first_sublayer / kSublayers; }
  [[nodiscard]] int32_t end_layer() const noexcept { return (end_sublayer + 1) / kSublayers; }
  [[nodiscard]] bool has_attention(int32_t layer) const noexcept { return has_sublayer(kSublayers * layer); }
  [[nodiscard]] bool has_feed_forward(int32_t layer) const noexcept { return has_sublayer(kSublayers * layer + 1); }
  /// Layers whose attention, and so whose cache, is here: [first_cached, end_layer).
  [[nodiscard]] int32_t first_cached() const noexcept { return (first_sublayer + 1) / kSublayers; }
  [[nodiscard]] bool caches() const noexcept { return first_cached() < end_layer(); }
  /// Whether the stage needs the tensor. The output projection of a tied model is the embedding's matrix.
  [[nodiscard]] bool holds(const ArchSpec& spec, const TensorSpec& tensor) const noexcept;
  bool operator==(const StageUnits&) const = default;

 private:
  [[nodiscard]] bool has_sublayer(int32_t i) const noexcept { return i >= first_sublayer && i < end_sublayer; }
};

/// All units in one stage.
[[nodiscard]] StageUnits whole_model(const ArchSpec& spec) noexcept;
/// Cuts the layers into `stages` nearly equal parts (1 <= stages <= layers), the embedding with the first, the output
/// with the last.
[[nodiscard]] std::vector<StageUnits> even_cut(const ArchSpec& spec, int32_t stages);

/// "layers 0-7", "layers 0-7 and the attention of 8", "the feed-forward of layer 8 and layers 9-15", "no layers".
[[nodiscard]] std::string layers_text(const StageUnits& units);

}  // namespace headrace
