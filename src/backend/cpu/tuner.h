#pragma once

#include <functional>
#include <span>

#include "backend/cpu/tuning.h"
#include "base/compute_pool.h"

namespace headrace {

/// The matrices of a model that have one type and layout.
struct TunedShapes {
  DType dtype = DType::kF32;
  WeightLayout layout = WeightLayout::kRows;
  struct Size {
    int64_t n = 0, k = 0;
    bool operator==(const Size&) const = default;
  };
  std::vector<Size> sizes;  ///< distinct ones
};

/// One comparison: seconds of a pass over the matrices, medians.
struct TuneResult {
  DType dtype = DType::kF32;
  WeightLayout layout = WeightLayout::kRows;
  RowClass rows = RowClass::k1;
  MatmulTuning best;
  double static_seconds = 0;
  double best_seconds = 0;
  bool adopted = false;  ///< whether the best one is used
};

/// Measures every bit-equal candidate (kernels of each class up to `isa`, splits over the pool's threads) for each kind
/// of matrix and number of rows, in turns. One that differs from the static choice is adopted only where it is faster
/// by 3 % and in most of the turns: so tuning loses nothing but its own time, a few seconds a type. `on_result` sees
/// each.
[[nodiscard]] CpuTuning tune_matmuls(ComputePool& pool, Isa isa, std::span<const TunedShapes> shapes,
                                     const std::function<void(const TuneResult&)>& on_result = {});

}  // namespace headrace
