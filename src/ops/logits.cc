#include "ops/logits.h"

#include <algorithm>
#include <limits>

#include "ops/vector_math.h"

namespace headrace {

float logit_weight(float x, float best, float scale, float least) noexcept {
  const float w = x == best ? 1.0f : exp_f32((x - best) * scale);
  return w >= least ? w : 0.0f;  // false for a NaN
}

namespace ref {
namespace {

int64_t arg_max(const ArgMaxArgs& a) noexcept {
  float best = -std::numeric_limits<float>::infinity();
  int64_t found = -1;
  for (int64_t i = 0; i < a.n; ++i) {
    if (a.x[i] > best) {
      best = a.x[i];
      found = i;
    }
  }
  return found;
}

void logit_weights(const LogitWeightsArgs& a) noexcept {
  for (int64_t begin = 0; begin < a.n; begin += kWeightBlock) {
    double chains[16]{};
    for (int64_t i = begin; i < std::min(begin + kWeightBlock, a.n); ++i) {
      a.w[i] = logit_weight(a.x[i], a.best, a.scale, a.least);
      chains[i % 16] += static_cast<double>(a.w[i]);
    }
    for (int distance = 8; distance > 0; distance /= 2) {
      for (int c = 0; c < distance; ++c) chains[c] += chains[c + distance];
    }
    a.sums[begin / kWeightBlock] = chains[0];
  }
}

int64_t next_above(const NextAboveArgs& a) noexcept {
  int64_t i = a.begin;
  while (i < a.end && !(a.x[i] > a.threshold)) ++i;
  return i;
}

}  // namespace
}  // namespace ref

namespace avx2 {
int64_t arg_max(const ArgMaxArgs& a) noexcept;
void logit_weights(const LogitWeightsArgs& a) noexcept;
int64_t next_above(const NextAboveArgs& a) noexcept;
}  // namespace avx2
namespace avx512 {
int64_t arg_max(const ArgMaxArgs& a) noexcept;
void logit_weights(const LogitWeightsArgs& a) noexcept;
int64_t next_above(const NextAboveArgs& a) noexcept;
}  // namespace avx512

constinit const OpTable<ArgMaxFn> kArgMax{
    "arg_max",
    {{Isa::kRef, ref::arg_max}, {Isa::kAvx2, HR_X86(avx2::arg_max)}, {Isa::kAvx512, HR_X86(avx512::arg_max)}}};
constinit const OpTable<LogitWeightsFn> kLogitWeights{"logit_weights",
                                                      {{Isa::kRef, ref::logit_weights},
                                                       {Isa::kAvx2, HR_X86(avx2::logit_weights)},
                                                       {Isa::kAvx512, HR_X86(avx512::logit_weights)}}};
constinit const OpTable<NextAboveFn> kNextAbove{
    "next_above",
    {{Isa::kRef, ref::next_above}, {Isa::kAvx2, HR_X86(avx2::next_above)}, {Isa::kAvx512, HR_X86(avx512::next_above)}}};

}  // namespace headrace
