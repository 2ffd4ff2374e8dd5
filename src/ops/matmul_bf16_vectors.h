#pragma once

#include <immintrin.h>

#include "ops/bf16_pairs_layout.h"
#include "ops/flush_subnormals.h"
#include "ops/matmul_kernels.h"

/// Products of recipe bf16x32 (matmul.h) in vectors, whatever their width. V is an instruction set:
///   V::F, V::kLanes     a vector of f32; 8 or 16 of them
///   V::kMostRows        rows of the largest tile; fewer rows have as many columns more
///   load_pairs, even, odd    kLanes pairs of weights; their halves widened to f32
///   load, store, zero, broadcast, fma, add, canonical    as they are named; canonical: the one NaN for any NaN
///
/// A column is kLanes neurons of a group. A tile is rows x columns; its two chains a row and column are registers.
/// Activations are widened once for a pass of rows and a slice of k, so that a broadcast is part of the multiplication;
/// between slices y holds the sums.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

constexpr int64_t kScratchFloats = 32768;  // 128 KiB: a pass's activations stay in the L2 cache
constexpr int64_t kPassRows = 64;
constexpr int64_t kFetchAhead = 1024;  // bytes of each column's weights

/// Widened activations of a pass: row r at values + r * stride. Rows lie an odd number of cache lines apart, lest a
/// tile's rows fall into the same set of the L1 cache.
struct WideRows {
  int64_t slice = 0;  ///< k of a slice
  int64_t stride = 0;
  alignas(64) float values[kScratchFloats + kPassRows * 16];
};

template <class V>
class Bf16Product {
 public:
  static void run(const MatmulArgs& args, RowRange groups) {
    WideRows wide;
    for (int64_t first = 0; first < args.x.rows; first += kPassRows) {
      const int64_t rest = args.x.rows - first;
      Bf16Product(args, groups, wide, first, rest < kPassRows ? rest : kPassRows).pass();
    }
  }

 private:
  static constexpr int64_t kColumnsOfGroup = kNeuronGroup / V::kLanes;
  /// Columns whose weights stay in the L2 cache while all rows of the pass use them.
  static constexpr int64_t kChunk = V::kMostRows;

  Bf16Product(const MatmulArgs& args, RowRange groups, WideRows& wide, int64_t first, int64_t rows)
      : args_(args), groups_(groups), wide_(wide), first_(first), rows_(rows), k_(bf16_padded_k(args.w.k)) {}

  void pass() {
    const int64_t most = kScratchFloats / rows_ / kBf16BlockK * kBf16BlockK;
    wide_.slice = k_ < most ? k_ : most;
    wide_.stride = wide_.slice + (wide_.slice % 32 == 0 ? 16 : 0);
    const int64_t end = groups_.end * kColumnsOfGroup;
    for (done_ = 0; done_ < k_; done_ += wide_.slice) {
      count_ = k_ - done_ < wide_.slice ? k_ - done_ : wide_.slice;
      widen();
      for (int64_t c = groups_.begin * kColumnsOfGroup; c < end; c += kChunk) {
        row_tiles<V::kMostRows>(0, c, c + kChunk < end ? c + kChunk : end);
      }
    }
  }

  void widen() {
    const int64_t row_bytes = act_row_bytes(args_.x.form, args_.x.k);
    for (int64_t r = 0; r < rows_; ++r) {
      const std::byte* from = args_.x.data + (first_ + r) * row_bytes + done_ * 2;
      float* to = wide_.values + r * wide_.stride;
      for (int64_t i = 0; i < count_; i += V::kLanes) V::store(to + i, V::widen(from + i * 2));
    }
  }

  template <int rows>
  void row_tiles(int64_t r, int64_t column, int64_t end) {
    for (; r + rows <= rows_; r += rows) column_tiles<rows, V::kMostRows / rows>(r, column, end);
    if constexpr (rows > 1) row_tiles<rows / 2>(r, column, end);
  }
  template <int rows, int columns>
  void column_tiles(int64_t r, int64_t column, int64_t end) {
    for (; column + columns <= end; column += columns) tile<rows, columns>(r, column);
    if constexpr (columns > 1) column_tiles<rows, columns / 2>(r, column, end);
  }

  template <int rows, int columns>
  void tile(int64_t r, int64_t column) {
    using F = typename V::F;
    const std::byte* w[columns];
    for (int c = 0; c < columns; ++c) {
      w[c] = args_.w.data + (column + c) / kColumnsOfGroup * bf16_group_bytes(args_.w.k) +
             (column + c) % kColumnsOfGroup * V::kLanes * 4 + done_ / 2 * kBf16PairBytes;
    }
    const float* x = wide_.values + r * wide_.stride;
    F acc[rows][columns];
    for (int i = 0; i < rows; ++i) {
      for (int c = 0; c < columns; ++c) acc[i][c] = done_ == 0 ? V::zero() : load_sums(r + i, column + c);
    }
    for (int64_t block = 0; block < count_; block += kBf16BlockK, x += kBf16BlockK) {
      F even[rows][columns], odd[rows][columns];
      for (int i = 0; i < rows; ++i) {
        for (int c = 0; c < columns; ++c) even[i][c] = odd[i][c] = V::zero();
      }
#pragma GCC unroll 2
      for (int64_t at = 0; at < kBf16BlockK; at += 2) {
#pragma GCC unroll 8
        for (int c = 0; c < columns; ++c) {
          const auto pairs = V::load_pairs(w[c]);
          _mm_prefetch(reinterpret_cast<const char*>(w[c] + kFetchAhead), _MM_HINT_T0);
          w[c] += kBf16PairBytes;
          const F w_even = V::even(pairs), w_odd = V::odd(pairs);
#pragma GCC unroll 8
          for (int i = 0; i < rows; ++i) {
            even[i][c] = V::fma(V::broadcast(x + i * wide_.stride + at), w_even, even[i][c]);
            odd[i][c] = V::fma(V::broadcast(x + i * wide_.stride + at + 1), w_odd, odd[i][c]);
          }
        }
      }
      for (int i = 0; i < rows; ++i) {
        for (int c = 0; c < columns; ++c) acc[i][c] = V::add(acc[i][c], V::add(even[i][c], odd[i][c]));
      }
    }
    for (int i = 0; i < rows; ++i) {
      for (int c = 0; c < columns; ++c) store_sums(r + i, column + c, acc[i][c]);
    }
  }

  /// Neurons of a column that exist.
  [[nodiscard]] int64_t lanes_of(int64_t column) const {
    const int64_t rest = args_.w.n - column * V::kLanes;
    return rest < V::kLanes ? rest : V::kLanes;
  }
  static typename V::F load_some(const float* from, int64_t count) {
    if (count == V::kLanes) return V::load(from);
    alignas(64) float some[V::kLanes] = {};
    for (int64_t i = 0; i < count; ++i) some[i] = from[i];
    return V::load(some);
  }
  typename V::F load_sums(int64_t r, int64_t column) const {
    return load_some(args_.y + (first_ + r) * args_.y_stride + column * V::kLanes, lanes_of(column));
  }
  void store_sums(int64_t r, int64_t column, typename V::F sums) const {
    const int64_t count = lanes_of(column);
    if (done_ + count_ == k_) {
      if (args_.bias != nullptr) sums = V::add(sums, load_some(args_.bias + column * V::kLanes, count));
      sums = V::canonical(sums);
    }
    float* to = args_.y + (first_ + r) * args_.y_stride + column * V::kLanes;
    if (count == V::kLanes) {
      V::store(to, sums);
      return;
    }
    alignas(64) float some[V::kLanes];
    V::store(some, sums);
    for (int64_t i = 0; i < count; ++i) to[i] = some[i];
  }

  const MatmulArgs& args_;
  const RowRange groups_;
  WideRows& wide_;
  const int64_t first_, rows_;    ///< of the pass
  const int64_t k_;               ///< padded
  int64_t done_ = 0, count_ = 0;  ///< the slice of k
};

}  // namespace
}  // namespace headrace
