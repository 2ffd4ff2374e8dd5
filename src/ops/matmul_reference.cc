#include <algorithm>
#include <cmath>
#include <span>

#include "base/byte_order.h"
#include "ops/interleaved_layout.h"
#include "ops/matmul_kernels.h"
#include "ops/matmul_r8x256.h"
#include "ops/requant.h"
#include "ops/vector_math.h"
#include "quant/format.h"

namespace headrace::ref {
namespace {

/// One row of quantised activations.
struct QuantizedRow {
  const int8_t* q;
  const float* scale;
  const int16_t* sum;
  std::span<const Outlier> outliers;
};
QuantizedRow quantized_row(const ActView& x, int64_t r) noexcept {
  const std::byte* record = x.data + r * act_row_bytes(x.form, x.k);
  const std::byte* outliers = record + act_outlier_offset(x.form, x.k);
  return {reinterpret_cast<const int8_t*>(record),
          reinterpret_cast<const float*>(record + act_scale_offset(x.form, x.k)),
          reinterpret_cast<const int16_t*>(record + act_sum_offset(x.form, x.k)),
          {reinterpret_cast<const Outlier*>(outliers + kOutlierHeadBytes), load_le<uint32_t>(outliers)}};
}

int32_t dot(const int8_t* a, const int8_t* b, int64_t n) noexcept {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// Recipe q8x32: adds the blocks of one unit, the first of them block `first` of the row.
float add_unit32(const InterleavedFormat& format, const NeuronUnit& w, int blocks, const QuantizedRow& x, int64_t first,
                 float acc) noexcept {
  for (int b = 0; b < blocks; ++b) {
    const float a = x.scale[first + b];
    const int32_t isum = dot(w.q + 32 * b, x.q + 32 * (first + b), 32);
    acc = std::fma(w.d[b] * a, static_cast<float>(isum), acc);
    if (format.has_min) acc = std::fma(w.m[b], a * static_cast<float>(x.sum[first + b]), acc);
  }
  return acc;
}

/// Recipe q8x256: adds super-block `b` of the row.
float add_unit256(const InterleavedFormat& format, const NeuronUnit& w, const QuantizedRow& x, int64_t b,
                  float acc) noexcept {
  const int n = format.scale_elems;
  int32_t isum = 0, msum = 0;
  for (int s = 0; s < kUnitK / n; ++s) {
    isum += w.scale[s] * dot(w.q + s * n, x.q + kUnitK * b + s * n, n);
    if (!format.has_min) continue;
    const int16_t* sums = x.sum + 16 * b + s * n / 16;
    msum += w.min[s] * (n == 16 ? sums[0] : sums[0] + sums[1]);
  }
  acc = std::fma(w.d[0] * x.scale[b], static_cast<float>(isum), acc);
  if (format.has_min) acc = std::fma(-(w.m[0] * x.scale[b]), static_cast<float>(msum), acc);
  return acc;
}

/// The weight of input `i` of a unit, in f32.
float weight_at(const InterleavedFormat& format, const NeuronUnit& w, int64_t i) noexcept {
  const auto q = static_cast<float>(w.q[i]);
  if (format.block_elems == kSlabK) {
    const float product = w.d[i / kSlabK] * q;
    return format.has_min ? product + w.m[i / kSlabK] : product;
  }
  const int64_t s = i / format.scale_elems;
  const float product = w.d[0] * static_cast<float>(w.scale[s]) * q;
  return format.has_min ? product - w.m[0] * static_cast<float>(w.min[s]) : product;
}

/// Adds the rows' outliers and the bias to column `j` of y. `group`: the neuron's.
void finish_neuron(const MatmulArgs& args, const InterleavedFormat& format, const std::byte* group,
                   int64_t j) noexcept {
  for (int64_t r = 0; r < args.x.rows; ++r) {
    float& acc = args.y[r * args.y_stride + j];
    for (const Outlier& outlier : quantized_row(args.x, r).outliers) {
      NeuronUnit numbers;
      const int64_t done = outlier.i / kUnitK * kUnitK;
      const auto blocks = static_cast<int>(std::min<int64_t>(kUnitK, args.w.k - done) / format.block_elems);
      read_unit(format, group + done / kUnitK * format.unit_bytes, blocks, static_cast<int>(j % kNeuronGroup), numbers);
      acc = std::fma(weight_at(format, numbers, outlier.i - done), outlier.x, acc);
    }
    if (args.bias != nullptr) acc += args.bias[j];
  }
}

}  // namespace

void matmul_interleaved(const MatmulArgs& args, RowRange groups) noexcept {
  const WeightView& w = args.w;
  const InterleavedFormat& format = *find_interleaved(w.dtype);
  const int64_t group_bytes = interleaved_group_bytes(format, w.k);
  const int64_t last = std::min(w.n, groups.end * kNeuronGroup);
  for (int64_t j = groups.begin * kNeuronGroup; j < last; ++j) {
    const std::byte* unit = w.data + j / kNeuronGroup * group_bytes;
    for (int64_t r = 0; r < args.x.rows; ++r) args.y[r * args.y_stride + j] = 0.0f;
    for (int64_t done = 0; done < w.k; done += kUnitK, unit += format.unit_bytes) {
      const auto blocks = static_cast<int>(std::min<int64_t>(kUnitK, w.k - done) / format.block_elems);
      NeuronUnit numbers;
      read_unit(format, unit, blocks, static_cast<int>(j % kNeuronGroup), numbers);
      for (int64_t r = 0; r < args.x.rows; ++r) {
        const QuantizedRow x = quantized_row(args.x, r);
        float& acc = args.y[r * args.y_stride + j];
        acc = format.block_elems == kSlabK ? add_unit32(format, numbers, blocks, x, done / kSlabK, acc)
                                           : add_unit256(format, numbers, x, done / kUnitK, acc);
      }
    }
    finish_neuron(args, format, w.data + j / kNeuronGroup * group_bytes, j);
  }
}

void matmul_r8x256(const MatmulArgs& args, RowRange groups) noexcept {
  const WeightView& w = args.w;
  const InterleavedFormat& format = *find_interleaved(w.dtype);
  const int64_t group_bytes = requant_group_bytes(format, w.k);
  const int64_t last = std::min(w.n, groups.end * kNeuronGroup);
  for (int64_t j = groups.begin * kNeuronGroup; j < last; ++j) {
    const std::byte* group = w.data + j / kNeuronGroup * group_bytes;
    const std::byte* unit = group;
    const std::byte* scales = group + interleaved_group_bytes(format, w.k) + j % kNeuronGroup * 4;
    for (int64_t r = 0; r < args.x.rows; ++r) args.y[r * args.y_stride + j] = 0.0f;
    for (int64_t done = 0; done < w.k; done += kUnitK, unit += format.unit_bytes, scales += kRequantScaleBytes) {
      const int64_t count = std::min<int64_t>(kUnitK, w.k - done);
      const auto blocks = static_cast<int>(count / format.block_elems);
      NeuronUnit numbers;
      read_unit(format, unit, blocks, static_cast<int>(j % kNeuronGroup), numbers);
      const auto scale = load_le<float>(scales);
      int8_t w8[kUnitK];
      requant_unit(format, numbers, blocks, scale, w8);
      for (int64_t r = 0; r < args.x.rows; ++r) {
        const QuantizedRow x = quantized_row(args.x, r);
        float& acc = args.y[r * args.y_stride + j];
        const int32_t isum = dot(w8, x.q + done, count);
        acc = std::fma(scale * x.scale[done / kUnitK], static_cast<float>(isum), acc);
      }
    }
    finish_neuron(args, format, group, j);
  }
}

void matmul_decoded(const MatmulArgs& args, RowRange groups) noexcept {
  constexpr int64_t kSlice = 512;  // a multiple of every block and of the sixteen chains
  constexpr int64_t kRowTile = 32;
  const WeightView& w = args.w;
  const BlockFormat& format = *find_format(w.dtype);
  const DTypeInfo& info = dtype_info(w.dtype);
  const int64_t row_bytes = w.k / info.block_elems * info.block_bytes;
  const auto* x = reinterpret_cast<const float*>(args.x.data);
  const int64_t last = std::min(w.n, groups.end * kNeuronGroup);
  for (int64_t j = groups.begin * kNeuronGroup; j < last; ++j) {
    for (int64_t first = 0; first < args.x.rows; first += kRowTile) {
      const int64_t rows = std::min(kRowTile, args.x.rows - first);
      float lanes[kRowTile][16]{};
      for (int64_t done = 0; done < w.k; done += kSlice) {
        const int64_t count = std::min(kSlice, w.k - done);
        float values[kSlice];
        format.decode(w.data + j * row_bytes + done / info.block_elems * info.block_bytes, count, values);
        for (int64_t r = 0; r < rows; ++r) {
          const float* row = x + (first + r) * w.k + done;
          for (int64_t i = 0; i < count; ++i) lanes[r][i % 16] = std::fma(row[i], values[i], lanes[r][i % 16]);
        }
      }
      for (int64_t r = 0; r < rows; ++r) {
        const float sum = sum_lanes16(lanes[r]);
        args.y[(first + r) * args.y_stride + j] = args.bias == nullptr ? sum : sum + args.bias[j];
      }
    }
  }
}

}  // namespace headrace::ref
