#pragma once

#include <cstdint>

#include "ops/op_table.h"

namespace headrace {

// What the choice of a token needs of a row of logits, one value for each token of the vocabulary. One call is one row:
// a row is too short to be split among threads.

/// Index of the largest value, the first of equals; NaN counts as -infinity; -1 where none is above -infinity.
struct ArgMaxArgs {
  const float* x = nullptr;
  int64_t n = 0;
};
using ArgMaxFn = int64_t (*)(const ArgMaxArgs&) noexcept;
extern const OpTable<ArgMaxFn> kArgMax;

/// Values whose weights are summed together, the last block of a row being shorter.
inline constexpr int64_t kWeightBlock = 1024;

/// w[i] = e^((x[i] - best) * scale), and their sum for each block.
/// Recipe "logit weights v1":
///   w = 1 where x[i] == best (also where both are infinite), else exp_f32((x[i] - best) * scale), in f32;
///   0 where that is below `least`, or not a number;
///   sums[b] = block b's weights in f64 over 16 chains (i mod 16, each from 0, in order), joined by the tree of
///   vector_math.h.
struct LogitWeightsArgs {
  const float* x = nullptr;
  int64_t n = 0;
  float best = 0;   ///< no x[i] is above it
  float scale = 1;  ///< above 0, may be infinite
  float least = 0;  ///< in [0, 1]
  float* w = nullptr;
  double* sums = nullptr;  ///< [ceil(n / kWeightBlock)]
};
using LogitWeightsFn = void (*)(const LogitWeightsArgs&) noexcept;
extern const OpTable<LogitWeightsFn> kLogitWeights;

/// The first i in [begin, end) with x[i] > threshold; end where there is none. NaN is above nothing.
struct NextAboveArgs {
  const float* x = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  float threshold = 0;
};
using NextAboveFn = int64_t (*)(const NextAboveArgs&) noexcept;
extern const OpTable<NextAboveFn> kNextAbove;

/// One of the weights above; what a vector of them holds.
[[nodiscard]] float logit_weight(float x, float best, float scale, float least) noexcept;

}  // namespace headrace
