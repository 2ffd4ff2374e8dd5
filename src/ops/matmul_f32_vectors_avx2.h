#pragma once

#include <immintrin.h>

#include "ops/matmul_kernels.h"
#include "ops/matmul_row_tiles.h"
#include "quant/format.h"

/// Products of recipe f32-lanes16 (matmul.h) in vectors, whatever their width. V is an instruction set:
///   V::kNeurons, V::kMostRows   computed side by side; rows of the largest tile
///   V::add_products<T, neurons, rows>(w, w_stride, x, x_stride, k, lanes)   adds k products to the chains of neurons x
///     rows. T: F32, F16 or BF16, strides: bytes of w, values of x; `lanes` holds kLanes chains for each row and
///     neuron, row by row, kNeurons neurons a row. A ragged end of k goes on in the first chains, the others keep their
///     sums.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kAheadBytes = 1024;  // how far ahead each neuron's weights are fetched
constexpr int64_t kSlice = 512;        // k decoded at a time, a multiple of every block: 4 neurons are 8 KiB
constexpr int64_t kTileRows = 32;      // rows that share a decoded slice: their sums are at most 8 KiB

template <DType T>
consteval int64_t weight_bytes() {
  return T == DType::kF32 ? 4 : 2;
}

float join_lanes(const float* lanes) {
  const __m256 eight = _mm256_add_ps(_mm256_loadu_ps(lanes), _mm256_loadu_ps(lanes + 8));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

void store(const MatmulArgs& args, int64_t row, int64_t neuron, const float* lanes) {
  const float sum = join_lanes(lanes);
  args.y[row * args.y_stride + neuron] = args.bias == nullptr ? sum : sum + args.bias[neuron];
}

template <class V, DType T>
struct PlainKernel {
  static constexpr int kMaxRows = V::kMostRows;

  template <int neurons, int rows>
  static void block(const MatmulArgs& args, int64_t neuron, int64_t first) {
    const int64_t k = args.w.k, stride = k * weight_bytes<T>();
    float lanes[rows * V::kNeurons * kLanes] = {};
    V::template add_products<T, neurons, rows>(args.w.data + neuron * stride, stride,
                                               reinterpret_cast<const float*>(args.x.data) + first * k, k, k, lanes);
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < neurons; ++j) store(args, first + r, neuron + j, lanes + (r * V::kNeurons + j) * kLanes);
    }
  }

  template <int rows>
  static void tile(const MatmulArgs& args, int64_t group, int64_t first) {
    int64_t j = group * kNeuronGroup;
    const int64_t last = j + kNeuronGroup < args.w.n ? j + kNeuronGroup : args.w.n;
    for (; j + V::kNeurons <= last; j += V::kNeurons) block<V::kNeurons, rows>(args, j, first);
    for (; j < last; ++j) block<1, rows>(args, j, first);
  }
};

template <class V, DType T>
void run_plain(const MatmulArgs& args, RowRange groups) {
  run_tiles<PlainKernel<V, T>>(args, act_row_bytes(ActForm::kF32, args.x.k), groups);
}

template <class V, int rows>
void add_slice(const float* w, const float* x, int64_t x_stride, int64_t k, int64_t first, int64_t last, float* lanes) {
  for (; first + rows <= last; first += rows) {
    V::template add_products<DType::kF32, V::kNeurons, rows>(reinterpret_cast<const std::byte*>(w), kSlice * 4,
                                                             x + first * x_stride, x_stride, k,
                                                             lanes + first * V::kNeurons * kLanes);
  }
  if constexpr (rows > 1) add_slice<V, rows / 2>(w, x, x_stride, k, first, last, lanes);
}

/// Weights of any format, decoded a slice at a time.
template <class V>
void run_decoded(const MatmulArgs& args, RowRange groups) {
  constexpr int kNeurons = V::kNeurons;
  const int64_t k = args.w.k;
  const BlockFormat& format = *find_format(args.w.dtype);
  const DTypeInfo& info = dtype_info(args.w.dtype);
  const int64_t row_bytes = k / info.block_elems * info.block_bytes;
  const auto* x = reinterpret_cast<const float*>(args.x.data);
  const int64_t end = groups.end * kNeuronGroup < args.w.n ? groups.end * kNeuronGroup : args.w.n;
  float weights[kNeurons * kSlice] = {};  // neurons past the last stay zero
  for (int64_t j = groups.begin * kNeuronGroup; j < end; j += kNeurons) {
    const int64_t neurons = end - j < kNeurons ? end - j : kNeurons;
    for (int64_t first = 0; first < args.x.rows; first += kTileRows) {
      const int64_t rows = args.x.rows - first < kTileRows ? args.x.rows - first : kTileRows;
      float lanes[kTileRows * kNeurons * kLanes] = {};
      for (int64_t done = 0; done < k; done += kSlice) {
        const int64_t count = k - done < kSlice ? k - done : kSlice;
        const int64_t slice_at = done / info.block_elems * info.block_bytes;
        for (int64_t i = 0; i < neurons; ++i) {
          format.decode(args.w.data + (j + i) * row_bytes + slice_at, count, weights + i * kSlice);
        }
        add_slice<V, V::kMostRows>(weights, x + first * k + done, k, count, 0, rows, lanes);
      }
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < neurons; ++i) store(args, first + r, j + i, lanes + (r * kNeurons + i) * kLanes);
      }
    }
  }
}

}  // namespace
}  // namespace headrace
