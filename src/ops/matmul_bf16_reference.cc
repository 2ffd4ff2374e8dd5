// Recipe bf16x32 (matmul.h) in plain C++.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "ops/bf16_pairs_layout.h"
#include "ops/flushed_math.h"
#include "ops/matmul_kernels.h"

namespace headrace::ref {
void matmul_bf16(const MatmulArgs& args, RowRange groups) noexcept {
  const int64_t k = args.w.k, row_bytes = act_row_bytes(args.x.form, k);
  const int64_t last = std::min(args.w.n, groups.end * kNeuronGroup);
  for (int64_t j = groups.begin * kNeuronGroup; j < last; ++j) {
    const std::byte* group = args.w.data + j / kNeuronGroup * bf16_group_bytes(k);
    for (int64_t r = 0; r < args.x.rows; ++r) args.y[r * args.y_stride + j] = 0;
    for (int64_t done = 0; done < k; done += kBf16BlockK) {
      float w[kBf16BlockK];
      unpack_bf16_neuron(group, j % kNeuronGroup, done, kBf16BlockK, w);
      for (int64_t r = 0; r < args.x.rows; ++r) {
        const auto* x = reinterpret_cast<const uint16_t*>(args.x.data + r * row_bytes) + done;
        float even = 0, odd = 0;
        for (int64_t i = 0; i < kBf16BlockK; i += 2) {
          even = fma_flushed(bf16_to_f32(x[i]), w[i], even);
          odd = fma_flushed(bf16_to_f32(x[i + 1]), w[i + 1], odd);
        }
        float& acc = args.y[r * args.y_stride + j];
        acc = add_flushed(acc, add_flushed(even, odd));
      }
    }
    for (int64_t r = 0; r < args.x.rows; ++r) {
      float& y = args.y[r * args.y_stride + j];
      if (args.bias != nullptr) y = add_flushed(y, args.bias[j]);
      if (std::isnan(y)) y = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

}  // namespace headrace::ref
