// Products of recipe r8x256 (matmul.h) by AMX tiles.
//
// One int8 a weight and one scale for 256 k: a step multiplies 32 rows of activations by 32 neurons over 256 k, in 16
// products that stay in four tiles, and only then is anything scaled. Units are expanded two at a time (16 KiB for 32
// neurons, in the L1 cache) and serve all rows of a pass. f32 sums lie in the L2 cache beside the activations.
//
// Activations of one pass, 512 rows, and of one chunk of k together take at most 1 MiB: longer k goes chunk by chunk,
// the sums waiting in y, since a pass of fewer rows would expand the weights more often.
#include <immintrin.h>

#include "ops/matmul_r8x256.h"
#include "ops/matmul_r8x256_avx512.h"
#include "ops/matmul_tiles_amx.h"
#include "ops/outlier_columns_avx512.h"

namespace headrace::amx {
namespace {

constexpr int kUnitBytes = kUnitSlabs * kSlabBytes;  // expanded
constexpr int kPanelUnits = 2;
constexpr int64_t kChunkUnits = kPassBytes / kUnitK;  // units of a chunk, times rows
constexpr int64_t kLeastRows = 12;                    // below, vpdpbusd is faster

struct Scratch {
  alignas(64) std::byte w8[kPanelUnits][2][kUnitBytes];  ///< of two groups
  alignas(64) int32_t sums[2][2][2][kTileRows][kLanes];  ///< in turn; of group, tile of rows
  alignas(64) float acc[kMaxPassRows / kTileRows][kTileRows][2][kLanes];
  OutlierColumns<kMaxPassRows, 2> outliers;
  alignas(64) float a[kChunkUnits];  ///< scales of the activations, by unit, tile, row
};

/// One or two tiles of rows times one unit of one or two groups.
struct Step {
  int tiles = 0;
  const float* a = nullptr;                               ///< [tiles][kTileRows]
  const std::byte* r[2] = {};                             ///< of each group
  const int32_t (*sums)[2][kTileRows][kLanes] = nullptr;  ///< [group][tile]
  float (*acc)[kTileRows][2][kLanes] = nullptr;           ///< [tile]
};

/// Adds a step's sums to the accumulators: `quarter` (0 to 3) of its rows.
template <int groups>
void finish(const Step& step, int quarter, int height) {
  if (step.tiles == 0) return;
  const int t = step.tiles == 2 ? quarter / 2 : 0;
  const int rows = step.tiles == 2 ? kTileRows / 2 : kTileRows / 4;
  const int first = quarter * rows % kTileRows, end = first + rows < height ? first + rows : height;
  __m512 scales[groups];
  for (int g = 0; g < groups; ++g) scales[g] = _mm512_loadu_ps(step.r[g]);
#pragma GCC unroll 4
  for (int r = first; r < end; ++r) {
    const __m512 a = _mm512_set1_ps(step.a[t * kTileRows + r]);
#pragma GCC unroll 2
    for (int g = 0; g < groups; ++g) {
      float* acc = step.acc[t][r][g];
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(step.sums[g][t][r]));
      _mm512_store_ps(acc, _mm512_fmadd_ps(_mm512_mul_ps(scales[g], a), sum, _mm512_load_ps(acc)));
    }
  }
}

/// Multiplies `products` times 64 k; between the products, which keep the tile unit busy, finishes the step before.
/// x0, x1: the first row of each tile. Tiles 0 to 3: sums, of group g and tile t in 2 * g + t; 4 and 5: activations;
/// 6 and 7: weights.
template <int tiles, int groups>
void multiply(const std::byte* x0, const std::byte* x1, int64_t row_bytes, int products,
              const std::byte (*w8)[kUnitBytes], int32_t (*sums)[2][kTileRows][kLanes], const Step& before,
              int height) {
  _tile_zero(0);
  if constexpr (tiles == 2) _tile_zero(1);
  if constexpr (groups == 2) _tile_zero(2);
  if constexpr (tiles == 2 && groups == 2) _tile_zero(3);
  for (int i = 0; i < kUnitK / 64; ++i) {
    if (i < products) {
      _tile_loadd(4, x0 + 64 * i, row_bytes);
      _tile_loadd(6, w8[0] + kTileBytes * i, 64);
      _tile_dpbssd(0, 4, 6);
      if constexpr (tiles == 2) {
        _tile_loadd(5, x1 + 64 * i, row_bytes);
        _tile_dpbssd(1, 5, 6);
      }
      if constexpr (groups == 2) {
        _tile_loadd(7, w8[1] + kTileBytes * i, 64);
        _tile_dpbssd(2, 4, 7);
        if constexpr (tiles == 2) _tile_dpbssd(3, 5, 7);
      }
    }
    finish<groups>(before, i, height);
  }
  _tile_stored(0, sums[0][0], 64);
  if constexpr (tiles == 2) _tile_stored(1, sums[0][1], 64);
  if constexpr (groups == 2) _tile_stored(2, sums[1][0], 64);
  if constexpr (tiles == 2 && groups == 2) _tile_stored(3, sums[1][1], 64);
}

/// Rows [first, last) of a pass, units [first_unit, last_unit) of a chunk.
struct Part {
  int64_t first = 0, last = 0, tiles = 0;
  int64_t first_unit = 0, last_unit = 0;
  int height = 0;
  bool is_first = true, is_last = true;  ///< chunk of its pass
  [[nodiscard]] int64_t row_of_tile(int64_t t) const {
    const int64_t row = first + t * kTileRows;
    return row < last - height ? row : last - height;
  }
};

void gather_scales(const MatmulArgs& args, const Part& part, float* a) {
  const int64_t row_bytes = act_row_bytes(args.x.form, args.x.k), scale_at = act_scale_offset(args.x.form, args.x.k);
  for (int64_t t = 0; t < part.tiles; ++t) {
    for (int r = 0; r < part.height; ++r) {
      const std::byte* scales = args.x.data + (part.row_of_tile(t) + r) * row_bytes + scale_at;
      for (int64_t u = part.first_unit; u < part.last_unit; ++u) {
        a[((u - part.first_unit) * part.tiles + t) * kTileRows + r] = load_f32(scales + 4 * u);
      }
    }
  }
}

inline __mmask16 neurons_of(const MatmulArgs& args, int64_t group) {
  const int64_t rest = args.w.n - group * kNeuronGroup;
  return static_cast<__mmask16>(rest < kNeuronGroup ? (1 << rest) - 1 : 0xffff);
}

/// One or two groups, from group `first` on.
template <DType T, int groups>
void multiply_groups(const MatmulArgs& args, int64_t first, const Part& part, Scratch& scratch) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const int64_t k = args.x.k, row_bytes = act_row_bytes(args.x.form, k);
  const int64_t group_bytes = requant_group_bytes(kFormat, k), scales_at = interleaved_group_bytes(kFormat, k);
  const std::byte* weights = args.w.data + first * group_bytes;
  for (int64_t t = 0; t < part.tiles; ++t) {
    for (int r = 0; r < part.height; ++r) {
      for (int g = 0; g < groups; ++g) {
        const float* y = args.y + (part.row_of_tile(t) + r) * args.y_stride + (first + g) * kNeuronGroup;
        const __mmask16 kept = part.is_first ? __mmask16{0} : neurons_of(args, first + g);
        _mm512_store_ps(scratch.acc[t][r][g], _mm512_maskz_loadu_ps(kept, y));
      }
    }
  }

  Step before;
  int turn = 0;
  for (int64_t panel = part.first_unit; panel < part.last_unit; panel += kPanelUnits) {
    const int64_t rest = part.last_unit - panel;
    const int units = static_cast<int>(rest < kPanelUnits ? rest : kPanelUnits);
    const auto slabs_of = [&](int u) {
      const int64_t slabs = (k - (panel + u) * kUnitK) / kSlabK;
      return static_cast<int>(slabs < kUnitSlabs ? slabs : kUnitSlabs);
    };
    for (int u = 0; u < units; ++u) {
      for (int g = 0; g < groups; ++g) {
        const std::byte* group = weights + g * group_bytes;
        requant_unit<T, false>(group + (panel + u) * kFormat.unit_bytes, slabs_of(u),
                               group + scales_at + (panel + u) * kRequantScaleBytes, scratch.w8[u][g]);
      }
    }
    asm volatile("" ::: "memory");  // loads of tiles do not tell the compiler what they read
    for (int64_t t = 0; t < part.tiles; t += 2) {
      const bool two = part.tiles - t > 1;
      const std::byte* x0 = args.x.data + part.row_of_tile(t) * row_bytes;
      const std::byte* x1 = args.x.data + part.row_of_tile(two ? t + 1 : t) * row_bytes;
      for (int u = 0; u < units; ++u, turn ^= 1) {
        Step step;
        step.tiles = two ? 2 : 1;
        step.a = scratch.a + ((panel + u - part.first_unit) * part.tiles + t) * kTileRows;
        for (int g = 0; g < groups; ++g) {
          step.r[g] = weights + g * group_bytes + scales_at + (panel + u) * kRequantScaleBytes;
        }
        step.sums = scratch.sums[turn];
        step.acc = scratch.acc + t;
        const int64_t at = (panel + u) * kUnitK;
        const int products = (slabs_of(u) + 1) / 2;  // half a product: zeros follow the activations
        if (two) {
          multiply<2, groups>(x0 + at, x1 + at, row_bytes, products, scratch.w8[u], scratch.sums[turn], before,
                              part.height);
        } else {
          multiply<1, groups>(x0 + at, x1 + at, row_bytes, products, scratch.w8[u], scratch.sums[turn], before,
                              part.height);
        }
        before = step;
      }
    }
  }
  for (int quarter = 0; quarter < 4; ++quarter) finish<groups>(before, quarter, part.height);

  if (part.is_last) {
    for (int g = 0; g < groups; ++g) scratch.outliers.decode<T>(g, weights + g * group_bytes, k);
  }
  for (int64_t t = 0; t < part.tiles; ++t) {
    const int64_t row = part.row_of_tile(t);
    for (int r = 0; r < part.height; ++r) {
#pragma GCC unroll 2
      for (int g = 0; g < groups; ++g) {
        __m512 sum = _mm512_load_ps(scratch.acc[t][r][g]);
        if (part.is_last) {
          sum = scratch.outliers.add<T>(g, weights + g * group_bytes, k, row + r - part.first, sum);
          store(args, first + g, row + r, sum);
        } else {
          float* y = args.y + (row + r) * args.y_stride + (first + g) * kNeuronGroup;
          _mm512_mask_storeu_ps(y, neurons_of(args, first + g), sum);
        }
      }
    }
  }
}

/// `total` in equal parts of at most `most`, each a multiple of `step` but for the last.
inline int64_t equal_parts(int64_t total, int64_t most, int64_t step) {
  const int64_t parts = (total + most - 1) / most;
  return ((total + parts - 1) / parts + step - 1) / step * step;
}

}  // namespace

template <DType T>
void matmul_r8x256(const MatmulArgs& args, RowRange groups) noexcept {
  if (args.x.rows < kLeastRows) {
    avx512::matmul_r8x256<T>(args, groups);
    return;
  }
  Part part;
  part.height = tile_height(args);
  configure_tiles(part.height, 64);
  Scratch scratch;
  const int64_t pass_rows = equal_parts(args.x.rows, kMaxPassRows, 2 * kTileRows), units = requant_units(args.x.k);
  for (int64_t row = 0; row < args.x.rows; row += pass_rows) {
    part.last = row + pass_rows < args.x.rows ? row + pass_rows : args.x.rows;
    part.first = part.last - row < part.height ? part.last - part.height : row;
    part.tiles = (part.last - part.first + kTileRows - 1) / kTileRows;
    const int64_t chunk = equal_parts(units, kChunkUnits / (part.tiles * kTileRows), kPanelUnits);
    for (int64_t unit = 0; unit < units; unit += chunk) {
      part.first_unit = unit;
      part.last_unit = unit + chunk < units ? unit + chunk : units;
      part.is_first = unit == 0;
      part.is_last = part.last_unit == units;
      gather_scales(args, part, scratch.a);
      if (part.is_last) scratch.outliers.collect(args.x, part.first, part.last);
      int64_t g = groups.begin;
      for (; g + 2 <= groups.end; g += 2) multiply_groups<T, 2>(args, g, part, scratch);
      if (g < groups.end) multiply_groups<T, 1>(args, g, part, scratch);
    }
  }
  _tile_release();
}
template void matmul_r8x256<DType::kQ4_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ4_1>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ5_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ5_1>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ8_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kIQ4_NL>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ2_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ3_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ4_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ5_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kQ6_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_r8x256<DType::kIQ4_XS>(const MatmulArgs&, RowRange) noexcept;

}  // namespace headrace::amx
