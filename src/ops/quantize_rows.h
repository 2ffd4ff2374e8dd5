#pragma once

#include "ops/activation.h"

/// What the vector candidates of rounding share: rows and their outliers. In an unnamed namespace, unlike other
/// headers: each variant file needs a copy of its own, compiled for its own instruction set, that the linker cannot
/// exchange for another's.
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
  /// Adds values x[0], x[1], ... of a row, from value `first` on, whose bits `lanes` has.
  void add_lanes(const float* x, int64_t first, uint32_t lanes) {
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = __builtin_ctz(lanes);
      add(first + lane, x[lane]);
    }
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

/// Writes the records of `rows`: the blocks by quantize_block(row, first value, values, q, scale, sum, outliers), zeros
/// between the parts, the outliers' count.
template <int64_t block, int64_t sum_block, class QuantizeBlock>
void quantize_rows(const QuantizeArgs& args, RowRange rows, QuantizeBlock quantize_block) {
  const ActForm form = args.y.form;
  const int64_t k = args.y.k, row_bytes = act_row_bytes(form, k);
  const int64_t scale_at = act_scale_offset(form, k), sum_at = act_sum_offset(form, k);
  const int64_t outliers_at = act_outlier_offset(form, k);
  const int64_t num_blocks = (k + block - 1) / block, num_sums = k / sum_block;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    std::byte* out = args.y.data + r * row_bytes;
    auto* q = reinterpret_cast<int8_t*>(out);
    auto* scale = reinterpret_cast<float*>(out + scale_at);
    auto* sum = reinterpret_cast<int16_t*>(out + sum_at);
    OutlierList outliers(out + outliers_at);
    for (int64_t b = 0; b < num_blocks; ++b) {
      const int64_t values = k - b * block < block ? k - b * block : block;
      quantize_block(args.x + r * k, b * block, values, q + b * block, scale + b, sum + b * (block / sum_block),
                     outliers);
    }
    for (std::byte* p = out + k; p < out + scale_at; ++p) *p = std::byte{0};
    for (std::byte* p = out + scale_at + num_blocks * 4; p < out + sum_at; ++p) *p = std::byte{0};
    for (std::byte* p = out + sum_at + num_sums * 2; p < out + outliers_at; ++p) *p = std::byte{0};
    outliers.close();
  }
}

}  // namespace
}  // namespace headrace
