// Recipe bf16x32 (matmul.h) by AMX tiles: a tile product is one block of k for 16 rows and 16 neurons.
//
// Both operands are multiplied from where they lie. Rows of a pass and a slice of k stay in the L2 cache; so do the
// weights of a few groups, which all of these rows use while the next groups' are fetched. Between slices y holds the
// sums. Tiles are as high as there are rows.
#include <immintrin.h>

#include "ops/bf16_pairs_layout.h"
#include "ops/flush_subnormals.h"
#include "ops/matmul_kernels.h"
#include "ops/tile_config_amx.h"

namespace headrace::amx {
namespace {

constexpr int64_t kMinRows = 5;     // below, vectors read weights as fast (4 rows: 14.9 GB/s, by tiles 14.5, of 16.0)
constexpr int64_t kMostRows = 256;  // of a pass
constexpr int64_t kActBytes = 1 << 20;  // of a pass and slice: half of a 2 MiB L2
constexpr int kTileRows = 16;
constexpr int kLanes = 16;
constexpr int64_t kMostGroups = 4;  // side by side: each is a stream from memory
constexpr int64_t kLineBytes = 64;
constexpr int64_t kTileBytes = kTileRows * kLineBytes;
// Results of that size leave the L2 cache before they are read. Written past it they cost 15 % less of the whole
// product, 512 rows, n = k = 2048: lines need not be read first, and the rows of y do not crowd the same sets.
constexpr int64_t kStreamBytes = 2 << 20;
constexpr int64_t kFetchAhead = 4096;  // bytes of a group's weights that are on their way, with one tile of rows

/// Adds `blocks` of k to the sums of two tiles of rows and two groups. Of each block that lies `fetch` bytes on,
/// fetches `fetched` bytes.
[[gnu::noinline]] void multiply_pair(const std::byte* x, int64_t row_bytes, const std::byte* w0, const std::byte* w1,
                                     int64_t blocks, int64_t fetch, int64_t fetched) {
  const std::byte* lower = x + kTileRows * row_bytes;
  for (; blocks > 0; --blocks) {
    _tile_loadd(6, w0, kLineBytes);
    _tile_loadd(4, x, row_bytes);
    _tile_loadd(7, w1, kLineBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, lower, row_bytes);
    _tile_dpbf16ps(1, 4, 7);
    for (int64_t at = fetch; at < fetch + fetched; at += kLineBytes) {
      _mm_prefetch(reinterpret_cast<const char*>(w0 + at), _MM_HINT_T1);
      _mm_prefetch(reinterpret_cast<const char*>(w1 + at), _MM_HINT_T1);
    }
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    x += kBf16BlockK * 2;
    lower += kBf16BlockK * 2;
    w0 += kTileBytes;
    w1 += kTileBytes;
  }
}

/// Products of one pass of rows.
class Pass {
 public:
  Pass(const MatmulArgs& args, RowRange groups, int64_t first, int64_t rows)
      : args_(args),
        groups_(groups),
        first_(first),
        rows_(rows),
        k_(bf16_padded_k(args.w.k)),
        row_bytes_(act_row_bytes(args.x.form, args.x.k)),
        group_bytes_(bf16_group_bytes(args.w.k)),
        batch_(rows > kTileRows ? 2 : kMostGroups),
        streams_(args.x.rows * args.w.n * 4 >= kStreamBytes) {}

  void run() {
    const int64_t slice = kActBytes / 2 / rows_ / kBf16BlockK * kBf16BlockK;
    for (done_ = 0; done_ < k_; done_ += slice) {
      count_ = k_ - done_ < slice ? k_ - done_ : slice;
      for (int64_t g = groups_.begin; g < groups_.end; g += batch_) {
        multiply_batch(g, g + batch_ < groups_.end ? g + batch_ : groups_.end);
      }
    }
  }

 private:
  /// Pairs of whole tiles of rows, then what is left as two tiles or one.
  void multiply_batch(int64_t group, int64_t end) {
    constexpr int64_t kPair = 2 * kTileRows;
    const int64_t rest = rows_ % kPair, whole = rows_ - rest;
    const int64_t blocks = whole / kPair + (rest > kTileRows ? 1 : 0);
    if (whole > 0) configure(kTileRows, kTileRows);
    for (int64_t pair = group; whole > 0 && pair < end; pair += 2) {
      for (int64_t b = 0; b < whole / kPair; ++b) two_tiles(b * kPair, kPair, pair, end, {b, blocks});
    }
    if (rest == 0) return;
    const int upper = rest < kTileRows ? static_cast<int>(rest) : kTileRows;
    if (rest <= kTileRows) {
      configure(upper, upper);
      one_tile(whole, rest, group, end);
      return;
    }
    configure(upper, static_cast<int>(rest) - upper);
    for (int64_t pair = group; pair < end; pair += 2) two_tiles(whole, rest, pair, end, {blocks - 1, blocks});
  }

  /// Tiles 0 to 3: sums, 0 and 1 of the upper tile of rows, 2 and 3 of the lower or, where there is one, of it too; 4
  /// and 5: activations; 6 and 7: weights.
  static void configure(int upper, int lower) {
    TileConfig config;
    for (const int t : {0, 1, 4}) config.shape(t, upper, kLineBytes);
    for (const int t : {2, 3, 5}) config.shape(t, lower, kLineBytes);
    for (const int t : {6, 7}) config.shape(t, kBf16BlockK / 2, kLineBytes);
    config.load();
  }

  /// Which part of the next batch's weights to fetch.
  struct Share {
    int64_t part, parts;
  };

  /// Rows [r, r + rows) of the pass, 17 to 32, times groups `pair` and, if before `end`, the next. Fetches a share of
  /// the weights one batch on.
  void two_tiles(int64_t r, int64_t rows, int64_t pair, int64_t end, Share share) {
    const std::byte* w0 = weights(pair);
    const std::byte* w1 = pair + 1 < end ? w0 + group_bytes_ : w0;
    const int64_t lines = (kTileRows + share.parts - 1) / share.parts * kLineBytes;
    const bool is_last_of_pair = r + rows >= rows_;
    if (done_ > 0) fetch_sums(is_last_of_pair ? 0 : r + rows, is_last_of_pair ? pair + 2 : pair);
    begin_sums(r, rows, pair, end);
    multiply_pair(activations(r), row_bytes_, w0, w1, count_ / kBf16BlockK, batch_ * group_bytes_ + share.part * lines,
                  lines);
    end_sums(r, rows, pair, end);
  }

  /// Rows [r, r + rows) of the pass, at most 16, times groups [group, end), at most 4.
  void one_tile(int64_t r, int64_t rows, int64_t group, int64_t end) {
    const std::byte* x = activations(r);
    const std::byte* w[kMostGroups];
    for (int64_t c = 0; c < batch_; ++c) w[c] = weights(group + c < end ? group + c : group);
    begin_sums(r, rows, group, end);
    for (int64_t block = 0; block < count_; block += kBf16BlockK) {
      for (int64_t c = 0; c < batch_; ++c) {
        for (int64_t at = kFetchAhead; at < kFetchAhead + kTileBytes; at += kLineBytes) {
          _mm_prefetch(reinterpret_cast<const char*>(w[c] + at), _MM_HINT_T0);
        }
      }
      _tile_loadd(4, x, row_bytes_);
      _tile_loadd(6, w[0], kLineBytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, w[1], kLineBytes);
      _tile_dpbf16ps(1, 4, 7);
      if (batch_ == kMostGroups) {
        _tile_loadd(6, w[2], kLineBytes);
        _tile_dpbf16ps(2, 4, 6);
        _tile_loadd(7, w[3], kLineBytes);
        _tile_dpbf16ps(3, 4, 7);
      }
      x += kBf16BlockK * 2;
      for (int64_t c = 0; c < batch_; ++c) w[c] += kTileBytes;
    }
    end_sums(r, rows, group, end);
  }

  [[nodiscard]] const std::byte* activations(int64_t r) const {
    return args_.x.data + (first_ + r) * row_bytes_ + done_ * 2;
  }
  [[nodiscard]] const std::byte* weights(int64_t group) const {
    return args_.w.data + group * group_bytes_ + done_ / 2 * kBf16PairBytes;
  }

  /// Calls use(sums of a row and group, their place in y, first neuron, which of its neurons exist) for rows
  /// [r, r + rows) and the groups of a call of two_tiles, where rows > 16, or of one_tile.
  template <class Use>
  void each_row(int64_t r, int64_t rows, int64_t group, int64_t end, Use use) {
    const bool two = rows > kTileRows;
    const int64_t last = two && group + 2 < end ? group + 2 : end;
    for (int64_t g = group; g < last; ++g) {
      const int64_t neuron = g * kNeuronGroup, rest = args_.w.n - neuron;
      const auto mask = static_cast<__mmask16>(rest >= kLanes ? 0xffff : (1 << rest) - 1);
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t tile = (two ? i / kTileRows * 2 : 0) + g - group;
        use(sums_[tile][i % kTileRows], args_.y + (first_ + r + i) * args_.y_stride + neuron, neuron, mask);
      }
    }
  }

  /// Fetches what the next call of two_tiles reads of y.
  void fetch_sums(int64_t r, int64_t pair) const {
    if (pair >= groups_.end) return;
    const float* y = args_.y + (first_ + r) * args_.y_stride + pair * kNeuronGroup;
    const int64_t rows = rows_ - r < 2 * kTileRows ? rows_ - r : 2 * kTileRows;
    for (int64_t i = 0; i < rows; ++i, y += args_.y_stride) {
      _mm_prefetch(reinterpret_cast<const char*>(y), _MM_HINT_T1);
      _mm_prefetch(reinterpret_cast<const char*>(y + kLanes), _MM_HINT_T1);
    }
  }

  /// Where the sums of two_tiles lie in y, if all of their neurons exist, so that tiles can be loaded and stored there.
  [[nodiscard]] float* whole_tiles(int64_t r, int64_t rows, int64_t group, int64_t end) const {
    const bool whole = rows > kTileRows && group + 2 <= end && (group + 2) * kNeuronGroup <= args_.w.n;
    return whole ? args_.y + (first_ + r) * args_.y_stride + group * kNeuronGroup : nullptr;
  }

  void begin_sums(int64_t r, int64_t rows, int64_t group, int64_t end) {
    if (done_ == 0) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      return;
    }
    if (float* y = whole_tiles(r, rows, group, end); y != nullptr) {
      const int64_t stride = args_.y_stride * 4;
      _tile_loadd(0, y, stride);
      _tile_loadd(1, y + kLanes, stride);
      _tile_loadd(2, y + kTileRows * args_.y_stride, stride);
      _tile_loadd(3, y + kTileRows * args_.y_stride + kLanes, stride);
      return;
    }
    each_row(r, rows, group, end, [](float* sums, const float* y, int64_t, __mmask16 mask) {
      _mm512_store_ps(sums, _mm512_maskz_loadu_ps(mask, y));
    });
    asm volatile("" ::: "memory");  // loads of tiles do not tell the compiler what they read
    _tile_loadd(0, sums_[0], kLineBytes);
    _tile_loadd(1, sums_[1], kLineBytes);
    _tile_loadd(2, sums_[2], kLineBytes);
    _tile_loadd(3, sums_[3], kLineBytes);
  }

  void end_sums(int64_t r, int64_t rows, int64_t group, int64_t end) {
    const bool is_last = done_ + count_ >= k_;
    if (float* y = whole_tiles(r, rows, group, end); y != nullptr && !is_last) {
      const int64_t stride = args_.y_stride * 4;
      _tile_stored(0, y, stride);
      _tile_stored(1, y + kLanes, stride);
      _tile_stored(2, y + kTileRows * args_.y_stride, stride);
      _tile_stored(3, y + kTileRows * args_.y_stride + kLanes, stride);
      return;
    }
    _tile_stored(0, sums_[0], kLineBytes);
    _tile_stored(1, sums_[1], kLineBytes);
    _tile_stored(2, sums_[2], kLineBytes);
    _tile_stored(3, sums_[3], kLineBytes);
    const float* bias = is_last ? args_.bias : nullptr;
    each_row(r, rows, group, end, [&](const float* sums, float* y, int64_t neuron, __mmask16 mask) {
      __m512 v = _mm512_load_ps(sums);
      if (bias != nullptr) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, bias + neuron));
      if (is_last) {
        const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
        v = _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
      }
      if (streams_ && mask == 0xffff && reinterpret_cast<uintptr_t>(y) % kLineBytes == 0) {
        _mm512_stream_ps(y, v);
      } else {
        _mm512_mask_storeu_ps(y, mask, v);
      }
    });
  }

  const MatmulArgs& args_;
  const RowRange groups_;
  const int64_t first_, rows_;  ///< of the pass
  const int64_t k_;             ///< padded
  const int64_t row_bytes_, group_bytes_;
  const int64_t batch_;           ///< groups that are multiplied by all rows before the next ones
  const bool streams_;            ///< results go past the caches
  int64_t done_ = 0, count_ = 0;  ///< the slice of k
  alignas(64) float sums_[4][kTileRows][kLanes] = {};
};

[[gnu::noinline]] void run(const MatmulArgs& args, RowRange groups) {
  for (int64_t first = 0; first < args.x.rows; first += kMostRows) {
    const int64_t rest = args.x.rows - first;
    Pass(args, groups, first, rest < kMostRows ? rest : kMostRows).run();
  }
  _tile_release();
  _mm_sfence();  // other threads read what was written past the caches
}

}  // namespace

void matmul_bf16(const MatmulArgs& args, RowRange groups) noexcept {
  if (args.x.rows < kMinRows) {
    avx512::matmul_bf16(args, groups);
    return;
  }
  const FlushSubnormals flush;
  run(args, groups);
}

}  // namespace headrace::amx
