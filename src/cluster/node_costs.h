#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/model_units.h"

namespace headrace::cluster {

/// Seconds that units take on a node in a step of that many rows.
struct UnitSeconds {
  int32_t rows = 1;
  double attention_seconds = 0;     ///< of the probe layer
  double feed_forward_seconds = 0;  ///< of the probe layer
  double output_seconds = 0;        ///< final norm and output projection of all rows
};

/// What a node was measured, or is said, to take.
struct NodeCosts {
  std::vector<UnitSeconds> at{};  ///< ascending in rows, at least one
  SublayerBytes probe_bytes{};    ///< of the layer that was measured; others take in proportion to theirs, by kind
  double fixed_seconds = 0;       ///< of each step of a node that holds units, whatever they are

  /// Between measured numbers of rows in proportion; below the first as the first; above the last, from there on as
  /// from the last but one, or by the row where there is one alone.
  /// Of sublayers with that many bytes of weights.
  [[nodiscard]] double layer_seconds(const SublayerBytes& bytes, int32_t rows) const noexcept;
  [[nodiscard]] double output_seconds(int32_t rows) const noexcept;
};

/// Throws Error(kInvalidArgument), naming the node, where the costs are not as above: no rows, not ascending, negative
/// or not finite.
void check_costs(const NodeCosts& costs, const std::string& node);

/// What a data sheet says.
struct DataSheet {
  double bytes_per_second = 0;       ///< of memory
  double operations_per_second = 0;  ///< of the matrix products, a multiply-add being two
  double efficiency = 0.6;           ///< share of both that is reached
  double fixed_seconds = 0;
};
/// A roofline: reading all weights once, or computing all rows, whichever takes longer.
[[nodiscard]] NodeCosts roofline(const DataSheet& sheet, const ModelUnits& model);

}  // namespace headrace::cluster
