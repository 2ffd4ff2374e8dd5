#include "sample/logit_kernels.h"

#include <array>
#include <limits>

#include "backend/choose_kernel.h"

namespace headrace {
namespace {

/// A row longer than a block of weights and no multiple of a vector, with what is no number in it.
constexpr int64_t kSize = kWeightBlock + 77;
using Row = std::array<float, kSize>;

Row known_row() {
  Row row{};
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i * 7919 % 1009) / 97.0f - 5.0f;
  row[3] = std::numeric_limits<float>::quiet_NaN();
  row[70] = -std::numeric_limits<float>::infinity();
  return row;
}

struct Weights {
  Row w{};
  std::array<double, 2> sums{};
  bool operator==(const Weights&) const = default;
};

Weights weights_of(LogitWeightsFn fn, const Row& row) {
  Weights out;
  fn({.x = row.data(),
      .n = kSize,
      .best = 5.5f,
      .scale = 1.25f,
      .least = 1e-4f,
      .w = out.w.data(),
      .sums = out.sums.data()});
  return out;
}

int64_t places_above(NextAboveFn fn, const Row& row) {
  int64_t sum = 0;
  for (int64_t at = 0; at < kSize; ++at) {
    at = fn({.x = row.data(), .begin = at, .end = kSize, .threshold = 4.0f});
    sum = sum * 31 % 1000003 + at;
  }
  return sum;
}

}  // namespace

LogitKernels choose_logit_kernels(Isa isa) {
  const Row row = known_row();
  const auto best_of = [&](ArgMaxFn fn) { return fn({.x = row.data(), .n = kSize}); };
  const int64_t best = best_of(kArgMax.reference().fn);
  const Weights weights = weights_of(kLogitWeights.reference().fn, row);
  const int64_t places = places_above(kNextAbove.reference().fn, row);
  return {
      .arg_max = choose_kernel(kArgMax, isa, [&](ArgMaxFn fn) { return best_of(fn) == best; }).fn,
      .weights =
          choose_kernel(kLogitWeights, isa, [&](LogitWeightsFn fn) { return weights_of(fn, row) == weights; }).fn,
      .next_above = choose_kernel(kNextAbove, isa, [&](NextAboveFn fn) { return places_above(fn, row) == places; }).fn,
  };
}

}  // namespace headrace
