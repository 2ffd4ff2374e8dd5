#pragma once

#include <immintrin.h>

#include "ops/matmul_interleaved_avx512.h"
#include "ops/matmul_kernels.h"
#include "ops/outlier_sheet_avx512.h"
#include "ops/tile_config_amx.h"

/// What the AMX products of interleaved weights share: passes over rows, tiles of rows within a pass, the registers'
/// configuration. A tile of activations is read in place: its rows are records. Tiles are as high as there are rows
/// below 16; else the last tile of a pass begins early enough to be full, and computes some rows twice.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace::amx {
namespace {

constexpr int kTileRows = 16;
constexpr int kTileBytes = 1024;
constexpr int kLanes = 16;
constexpr int64_t kPassBytes = 1 << 20;  // activations of one pass: half of a 2 MiB L2
// With more rows in a pass, their accumulators and rows of y crowd the L2 cache (512 are 5 to 10 % slower).
constexpr int64_t kMaxPassRows = 256;
// Groups whose sums are finished together, outliers added and all written to y: 512 bytes of each row, as y's lines are
// in no near cache; and what an outlier costs by itself, it costs once.
constexpr int kBandGroups = 8;
using InPlaceOutliers = OutlierSheet<kMaxPassRows, 64 * kMaxPassRows>;

inline int tile_height(const MatmulArgs& args) {
  return args.x.rows < kTileRows ? static_cast<int>(args.x.rows) : kTileRows;
}

/// Tiles 0 to 3: sums; 4 and 5: activations; 6 and 7: weights, `product_k` by 16 neurons.
inline void configure_tiles(int height, int product_k) {
  TileConfig config;
  for (int t = 0; t < 8; ++t) {
    const bool is_weights = t >= 6, is_activations = t == 4 || t == 5;
    config.shape(t, is_weights ? product_k / 4 : height, is_activations ? product_k : 64);
  }
  config.load();
}

/// One pass: `tiles` tiles of `height` rows within [first, last).
struct Pass {
  int64_t first = 0, last = 0, tiles = 0;
  int height = 0;
  [[nodiscard]] int64_t row_of_tile(int64_t t) const {
    const int64_t row = first + t * height;
    return row < last - height ? row : last - height;
  }
  /// The accumulator of a row, kTileRows to a tile: of two tiles that share it the last one's, which is stored last.
  [[nodiscard]] int64_t position_of(int64_t row) const {
    const int64_t start_of_last = row_of_tile(tiles - 1);
    if (row >= start_of_last) return (tiles - 1) * kTileRows + row - start_of_last;
    return (row - first) / height * kTileRows + (row - first) % height;
  }
};

/// Goes on to the next pass (a fresh one has its height set); false where there is none. At most kMaxPassRows rows, and
/// as many as kPassBytes hold or one tile.
inline bool next_pass(const MatmulArgs& args, Pass& pass) {
  if (pass.last >= args.x.rows) return false;
  int64_t most = kPassBytes / act_outlier_offset(args.x.form, args.x.k) / (2 * kTileRows) * (2 * kTileRows);
  most = most < kTileRows ? kTileRows : most > kMaxPassRows ? kMaxPassRows : most;
  pass.first = pass.last;
  pass.last = pass.first + most < args.x.rows ? pass.first + most : args.x.rows;
  if (pass.last - pass.first < pass.height) pass.first = pass.last - pass.height;
  pass.tiles = (pass.last - pass.first + pass.height - 1) / pass.height;
  return true;
}

/// Calls body(place among the accumulators, row) for each row of a pass.
template <class Body>
void for_rows(const Pass& pass, Body body) {
  for (int64_t t = 0; t < pass.tiles; ++t) {
    for (int r = 0; r < pass.height; ++r) body(t * kTileRows + r, pass.row_of_tile(t) + r);
  }
}

/// Calls body(first, last) for each band of the groups.
template <class Body>
void for_bands(RowRange groups, Body body) {
  for (int64_t g = groups.begin; g < groups.end; g += kBandGroups) {
    body(g, g + kBandGroups < groups.end ? g + kBandGroups : groups.end);
  }
}

/// Adds the outliers of all rows to the sums of `count` groups, whose weights begin at `weights`. place(position, g):
/// the accumulator of a row and group.
template <DType T, class Sheet, class Place>
void add_outliers_of_rows(const MatmulArgs& args, const std::byte* weights, int64_t group_bytes, int count,
                          const Pass& pass, const Sheet& outliers, const Place& place) {
  const int64_t k = args.x.k, row_bytes = act_row_bytes(args.x.form, k);
  const std::byte* heads = args.x.data + act_outlier_offset(args.x.form, k);
  outliers.template add<T, kBandGroups>(weights, group_bytes, count, k, place);
  for_rows(pass, [&](int64_t position, int64_t row) {
    if (outliers.holds(row - pass.first)) return;
    for (int g = 0; g < count; ++g) {
      float* sum = place(position, g);
      _mm512_store_ps(sum, add_outliers<T>(weights + g * group_bytes, k, heads + row * row_bytes, _mm512_load_ps(sum)));
    }
  });
}

/// The rows of `count` groups from their accumulators, kTileRows to a tile, to y.
template <DType T>
void store_rows(const MatmulArgs& args, int64_t first, int count, const Pass& pass, float (*acc)[kMaxPassRows][kLanes],
                const InPlaceOutliers& outliers) {
  const int64_t group_bytes = args.w.k / kSlabK * interleaved_format(T).unit_step_bytes;
  add_outliers_of_rows<T>(args, args.w.data + first * group_bytes, group_bytes, count, pass, outliers,
                          [acc](int64_t place, int g) { return acc[g][place]; });
  for_rows(pass, [&](int64_t place, int64_t row) {
    for (int g = 0; g < count; ++g) store(args, first + g, row, _mm512_load_ps(acc[g][place]));
  });
}

}  // namespace
}  // namespace headrace::amx
