// Recipe f32-lanes16 (matmul.h): the sixteen chains of a product are the lanes of two vectors.
#include <immintrin.h>

#include "ops/matmul_kernels.h"
#include "ops/matmul_row_tiles.h"
#include "quant/format.h"

namespace headrace::avx2 {
namespace {

constexpr int64_t kLanes = 16, kHalf = 8;
constexpr int kNeurons = 2;  // computed side by side: 2 x 2 rows are 8 of the 16 registers
constexpr int kMostRows = 2;
constexpr int64_t kAheadBytes = 1024;  // how far ahead each neuron's weights are fetched

template <DType T>
consteval int64_t weight_bytes() {
  return T == DType::kF32 ? 4 : 2;
}

/// Eight weights widened to f32.
template <DType T>
__m256 load_weights(const std::byte* p) {
  if constexpr (T == DType::kF32) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(p));
  } else {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    if constexpr (T == DType::kF16) return _mm256_cvtph_ps(bits);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
}

/// Adds k products to the chains of neurons x rows; `lanes` holds 16 chains for each row and neuron, row by row,
/// kNeurons neurons a row.
template <DType T, int neurons, int rows>
void add_products(const std::byte* w, int64_t w_stride, const float* x, int64_t x_stride, int64_t k, float* lanes) {
  constexpr int64_t kBytes = weight_bytes<T>();
  __m256 acc[rows][neurons][2];
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < neurons; ++j) {
      for (int h = 0; h < 2; ++h) acc[r][j][h] = _mm256_loadu_ps(lanes + (r * kNeurons + j) * kLanes + h * kHalf);
    }
  }
  int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    for (int j = 0; j < neurons; ++j) {
      _mm_prefetch(reinterpret_cast<const char*>(w + j * w_stride + i * kBytes + kAheadBytes), _MM_HINT_T0);
    }
    for (int h = 0; h < 2; ++h) {
      const int64_t at = i + h * kHalf;
      __m256 weights[neurons];
      for (int j = 0; j < neurons; ++j) weights[j] = load_weights<T>(w + j * w_stride + at * kBytes);
      for (int r = 0; r < rows; ++r) {
        const __m256 a = _mm256_loadu_ps(x + r * x_stride + at);
        for (int j = 0; j < neurons; ++j) acc[r][j][h] = _mm256_fmadd_ps(a, weights[j], acc[r][j][h]);
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < neurons; ++j) {
      for (int h = 0; h < 2; ++h) _mm256_storeu_ps(lanes + (r * kNeurons + j) * kLanes + h * kHalf, acc[r][j][h]);
    }
  }
  const int64_t rest = k - i;  // goes on in the first chains; the others keep their sums
  for (int j = 0; rest > 0 && j < neurons; ++j) {
    alignas(32) std::byte tail[kLanes * 4] = {};
    __builtin_memcpy(tail, w + j * w_stride + i * kBytes, static_cast<size_t>(rest * kBytes));
    for (int h = 0; h < 2; ++h) {
      alignas(32) float weights[kHalf];
      _mm256_store_ps(weights, load_weights<T>(tail + h * kHalf * kBytes));
      for (int r = 0; r < rows; ++r) {
        float* sums = lanes + (r * kNeurons + j) * kLanes + h * kHalf;
        for (int64_t c = 0; c < kHalf && h * kHalf + c < rest; ++c) {
          sums[c] = __builtin_fmaf(x[r * x_stride + i + h * kHalf + c], weights[c], sums[c]);
        }
      }
    }
  }
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

template <DType T>
struct PlainKernel {
  static constexpr int kMaxRows = kMostRows;

  template <int neurons, int rows>
  static void block(const MatmulArgs& args, int64_t neuron, int64_t first) {
    const int64_t k = args.w.k, stride = k * weight_bytes<T>();
    float lanes[rows * kNeurons * kLanes] = {};
    add_products<T, neurons, rows>(args.w.data + neuron * stride, stride,
                                   reinterpret_cast<const float*>(args.x.data) + first * k, k, k, lanes);
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < neurons; ++j) store(args, first + r, neuron + j, lanes + (r * kNeurons + j) * kLanes);
    }
  }

  template <int rows>
  static void tile(const MatmulArgs& args, int64_t group, int64_t first) {
    int64_t j = group * kNeuronGroup;
    const int64_t last = j + kNeuronGroup < args.w.n ? j + kNeuronGroup : args.w.n;
    for (; j + kNeurons <= last; j += kNeurons) block<kNeurons, rows>(args, j, first);
    for (; j < last; ++j) block<1, rows>(args, j, first);
  }
};

constexpr int64_t kSlice = 512;    // k decoded at a time, a multiple of every block: 2 neurons are 4 KiB
constexpr int64_t kTileRows = 32;  // rows that share a decoded slice: their sums are 4 KiB

template <int rows>
void add_slice(const float* w, const float* x, int64_t x_stride, int64_t k, int64_t first, int64_t last, float* lanes) {
  for (; first + rows <= last; first += rows) {
    add_products<DType::kF32, kNeurons, rows>(reinterpret_cast<const std::byte*>(w), kSlice * 4, x + first * x_stride,
                                              x_stride, k, lanes + first * kNeurons * kLanes);
  }
  if constexpr (rows > 1) add_slice<rows / 2>(w, x, x_stride, k, first, last, lanes);
}

}  // namespace

template <DType T>
void matmul_plain(const MatmulArgs& args, RowRange groups) noexcept {
  run_tiles<PlainKernel<T>>(args, act_row_bytes(ActForm::kF32, args.x.k), groups);
}
template void matmul_plain<DType::kF32>(const MatmulArgs&, RowRange) noexcept;
template void matmul_plain<DType::kF16>(const MatmulArgs&, RowRange) noexcept;
template void matmul_plain<DType::kBF16>(const MatmulArgs&, RowRange) noexcept;

void matmul_decoded(const MatmulArgs& args, RowRange groups) noexcept {
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
        add_slice<kMostRows>(weights, x + first * k + done, k, count, 0, rows, lanes);
      }
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < neurons; ++i) store(args, first + r, j + i, lanes + (r * kNeurons + i) * kLanes);
      }
    }
  }
}

}  // namespace headrace::avx2
