#pragma once

#include "ops/activation.h"

/// The rare part of rounding, shared by the vector candidates. In an unnamed namespace, unlike other headers: each
/// variant file needs a copy of its own, compiled for its own instruction set, that the linker cannot exchange for
/// another's.
namespace headrace {
namespace {

/// The outliers of a row, being collected at their place in its record.
class OutlierList {
 public:
  explicit OutlierList(std::byte* head) : head_(head) {}
  void add(int64_t i, float x) {
    const Outlier outlier{static_cast<int32_t>(i), x};
    __builtin_memcpy(head_ + kOutlierHeadBytes + count_++ * static_cast<int64_t>(sizeof(Outlier)), &outlier,
                     sizeof(Outlier));
  }
  /// Writes the count.
  void close() {
    const int64_t head = count_;  // int32 count, int32 0
    __builtin_memcpy(head_, &head, sizeof(head));
  }

 private:
  std::byte* head_;
  int64_t count_ = 0;
};

/// Lists the values of a block above the limit and copies the block to `kept` with zeros in their places. Returns the
/// largest magnitude that is left.
template <int64_t block>
[[gnu::noinline]] float take_outliers(const float* x, int64_t first, float limit, float* kept, OutlierList& outliers) {
  float amax = 0;
  for (int64_t i = 0; i < block; ++i) {
    const float a = __builtin_fabsf(x[i]);
    kept[i] = x[i];
    if (a > limit) {
      outliers.add(first + i, x[i]);
      kept[i] = 0;
    } else if (a > amax) {
      amax = a;
    }
  }
  return amax;
}

}  // namespace
}  // namespace headrace
