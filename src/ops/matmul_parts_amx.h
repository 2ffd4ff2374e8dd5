#pragma once

#include "ops/matmul_tiles_amx.h"

/// What the AMX products share whose weights are expanded for many rows at once: a pass over up to kMaxPassRows rows
/// goes chunk by chunk of k, so that the activations of a chunk stay in the L2 cache, and a panel of groups at a time.
/// Between the chunks the sums wait in y: a pass of fewer rows would expand the weights more often.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace::amx {
namespace {

constexpr int64_t kChunkUnits = 2048;  // units of a chunk, times rows: 512 KiB of activations in the L2 cache
constexpr int64_t kBandFloats = kBandGroups * kMaxPassRows * kLanes;
using PartOutliers = OutlierSheet<kMaxPassRows, 128 * kMaxPassRows>;

/// A pass over rows, and of it units [first_unit, last_unit): a chunk of k.
struct Part : Pass {
  int64_t first_unit = 0, last_unit = 0;
  bool is_first = true, is_last = true;  ///< chunk of its pass
};

/// `total` in equal parts of at most `most`, each a multiple of `step` but for the last.
inline int64_t equal_parts(int64_t total, int64_t most, int64_t step) {
  const int64_t parts = (total + most - 1) / most;
  return ((total + parts - 1) / parts + step - 1) / step * step;
}

/// Calls body(part) for each part of a product, after the outliers of the rows of a pass have been collected for its
/// last one.
template <class Body>
void for_parts(const MatmulArgs& args, PartOutliers& outliers, Body body) {
  Part part;
  part.height = tile_height(args);
  const int64_t pass_rows = equal_parts(args.x.rows, kMaxPassRows, 2 * kTileRows);
  const int64_t units = (args.x.k + kUnitK - 1) / kUnitK;
  for (int64_t row = 0; row < args.x.rows; row += pass_rows) {
    part.last = row + pass_rows < args.x.rows ? row + pass_rows : args.x.rows;
    part.first = part.last - row < part.height ? part.last - part.height : row;
    part.tiles = (part.last - part.first + kTileRows - 1) / kTileRows;
    const int64_t chunk = equal_parts(units, kChunkUnits / (part.tiles * kTileRows), 1);
    for (int64_t unit = 0; unit < units; unit += chunk) {
      part.first_unit = unit;
      part.last_unit = unit + chunk < units ? unit + chunk : units;
      part.is_first = unit == 0;
      part.is_last = part.last_unit == units;
      if (part.is_last) {
        outliers.collect(args.x, part.first, part.last, [&](int64_t at) { return part.position_of(at); });
      }
      body(static_cast<const Part&>(part));
    }
  }
}

inline __mmask16 neurons_of(const MatmulArgs& args, int64_t group) {
  const int64_t rest = args.w.n - group * kNeuronGroup;
  return static_cast<__mmask16>(rest < kNeuronGroup ? (1 << rest) - 1 : 0xffff);
}

/// Fetches the lines of a unit that fall to the steps of tiles `t` and `t + 1` of `tiles`: all in the first half of
/// them, so that the last line arrives in time.
inline void fetch_part(const std::byte* unit, int bytes, int64_t t, int64_t tiles) {
  const int64_t lines = bytes / 64, end = (t + 2) * 2 * lines / tiles;
  for (int64_t i = t * 2 * lines / tiles; i < (end < lines ? end : lines); ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(unit + 64 * i), _MM_HINT_T0);
  }
}

/// What is left to do for the sums of a step, of one or two row tiles, is done in so many parts.
constexpr int kFinishParts = 16;

/// Does one of them: `finish` has the number of tiles, and add_rows<rows>(tile, first row). is_pair: that there are two
/// tiles is known.
template <bool is_pair, class Finish>
[[gnu::always_inline]] inline void add_part(const Finish& finish, int part) {
  constexpr int kRows = 2 * kTileRows / kFinishParts;
  if (is_pair || finish.tiles == 2) {
    finish.template add_rows<kRows>(part * kRows / kTileRows, part * kRows % kTileRows);
  } else if (finish.tiles == 1) {
    finish.template add_rows<kRows / 2>(0, part * (kRows / 2));
  }
}

/// The sums of groups [first, first + count), a band, of at most `rows` rows: in panels of `panel` groups, which are
/// `stride` groups apart from row to row.
template <int panel, int stride, int64_t rows>
struct BandSums {
  static_assert(kBandGroups / panel * rows * stride * kLanes <= kBandFloats);
  const MatmulArgs& args;
  const Part& part;
  int64_t first;
  int count;
  float* acc;  ///< [kBandGroups / panel][rows][stride][kLanes]

  [[nodiscard]] float* at(int64_t position, int g) const {
    return acc + ((g / panel * rows + position) * stride + g % panel) * kLanes;
  }

  /// What chunks before have left in y, or zeros.
  void load() const {
    if (part.is_first) {
      for (int g = 0; g < count; ++g) {
        for (int64_t i = 0; i < part.tiles * kTileRows; ++i) _mm512_store_ps(at(i, g), _mm512_setzero_ps());
      }
      return;
    }
    for_rows(part, [&](int64_t place, int64_t row) {
      for (int g = 0; g < count; ++g) {
        _mm512_store_ps(at(place, g), _mm512_maskz_loadu_ps(neurons_of(args, first + g), y_at(row, g)));
      }
    });
  }

  /// Fetches for the rows whose turn comes with a pair of tiles from tile `t` on, and unit `unit`, what store writes
  /// or, of later chunks, what the next band's load reads: each line would hold up a store or a load.
  void fetch_rows(int64_t unit, int64_t t) const {
    const int64_t pairs = (part.tiles + 1) / 2, n = (part.last_unit - part.first_unit) * pairs;
    const int64_t i = (unit - part.first_unit) * pairs + t / 2;
    const int64_t height = part.last - part.first, end = part.first + (i + 1) * height / n;
    for (int64_t row = part.first + i * height / n; row < end; ++row) {
      const float* y = y_at(row, part.is_first ? 0 : kBandGroups);
      for (int g = 0; g < count; ++g) __builtin_prefetch(y + g * kNeuronGroup, 1);
    }
  }

  /// To y; finished, where the chunk is the last one of k.
  template <DType T>
  void store(const std::byte* weights, int64_t group_bytes, const PartOutliers& outliers) const {
    if (part.is_last) {
      add_outliers_of_rows<T>(args, weights, group_bytes, count, part, outliers,
                              [this](int64_t place, int g) { return at(place, g); });
    }
    for_rows(part, [&](int64_t place, int64_t row) {
      for (int g = 0; g < count; ++g) {
        const __m512 sum = _mm512_load_ps(at(place, g));
        if (part.is_last) {
          headrace::store(args, first + g, row, sum);
        } else {
          _mm512_mask_storeu_ps(y_at(row, g), neurons_of(args, first + g), sum);
        }
      }
    });
  }

 private:
  [[nodiscard]] float* y_at(int64_t row, int g) const {
    return args.y + row * args.y_stride + (first + g) * kNeuronGroup;
  }
};

/// Multiplies groups [first, last), a band whose weights begin at `weights`, `group_bytes` each, in panels of `panel`;
/// panel, stride, rows, acc: as of BandSums. multiply(first, count, acc, fetch) adds a panel's products to its sums,
/// and calls fetch(unit, t) with each pair of tiles.
template <DType T, int panel, int stride, int64_t rows, class Multiply>
void multiply_band(const MatmulArgs& args, int64_t first, int64_t last, const Part& part, int64_t group_bytes,
                   float* acc, const PartOutliers& outliers, const Multiply& multiply) {
  const BandSums<panel, stride, rows> sums{args, part, first, static_cast<int>(last - first), acc};
  sums.load();
  for (int64_t g = first; g < last; g += panel) {
    const int count = static_cast<int>(last - g < panel ? last - g : panel);
    const bool fetches = g + panel >= last;
    multiply(g, count, sums.at(0, static_cast<int>(g - first)), [&](int64_t unit, int64_t t) {
      if (fetches) sums.fetch_rows(unit, t);
    });
  }
  sums.template store<T>(args.w.data + first * group_bytes, group_bytes, outliers);
}

}  // namespace
}  // namespace headrace::amx
