// Products of recipe r8x256 (matmul.h) by AMX tiles.
//
// One int8 a weight and one scale for 256 k: a step multiplies 32 rows of activations by 32 neurons over 256 k, in 16
// products that stay in four tiles, and only then is anything scaled. A unit of four groups is expanded at a time, 16
// KiB in the L1 cache, for all rows of a pass, and a tile of activations comes from the L2 cache once for all four.
#include <immintrin.h>

#include "ops/matmul_parts_amx.h"
#include "ops/matmul_r8x256.h"
#include "ops/matmul_r8x256_avx512.h"
#include "ops/tile_registers_amx.h"

namespace headrace::amx {
namespace {

constexpr int kUnitBytes = kUnitSlabs * kSlabBytes;  // expanded
constexpr int kPanel = 4;                            // groups that are expanded together
constexpr int64_t kLeastRows = 9;                    // below, vpdpbusd is faster

/// Products of a step: of each group and tile.
using Sums = int32_t[2][2][kTileRows][kLanes];

struct Scratch {
  alignas(64) std::byte w8[kPanel][kUnitBytes];
  alignas(64) Sums sums[2];  ///< in turn: of this step, stored in the next, and of the one before
  alignas(64) float acc[kBandFloats];
  PartOutliers outliers;
  alignas(64) float a[kChunkUnits];  ///< scales of the activations, by unit, tile, row
};

/// One or two tiles of rows times one unit of two groups.
struct Step {
  int tiles = 0;
  const float* a = nullptr;    ///< [tiles][kTileRows]
  const std::byte* r[2] = {};  ///< of each group
  Sums* sums = nullptr;
  float (*acc)[kPanel][kLanes] = nullptr;  ///< [tiles * kTileRows], from the first group on
};

/// What finishes a step, in registers: stores to the accumulators might change anything in memory.
struct Finish {
  explicit Finish(const Step& step) : tiles(step.tiles), a(step.a), sums(step.sums), acc(step.acc) {
    for (int g = 0; tiles > 0 && g < 2; ++g) scales[g] = _mm512_loadu_ps(step.r[g]);
  }

  /// Adds `rows` rows of the sums, from row `first` of tile `t` on, to the accumulators.
  template <int rows>
  [[gnu::always_inline]] inline void add_rows(int t, int first) const {
#pragma GCC unroll 4
    for (int r = first; r < first + rows; ++r) {
      const __m512 scale = _mm512_set1_ps(a[t * kTileRows + r]);
#pragma GCC unroll 2
      for (int g = 0; g < 2; ++g) {
        float* acc_at = acc[t * kTileRows + r][g];
        const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512((*sums)[g][t][r]));
        const __m512 before = _mm512_load_ps(acc_at);
        _mm512_store_ps(acc_at, _mm512_fmadd_ps(_mm512_mul_ps(scales[g], scale), sum, before));
      }
    }
  }

  int tiles;
  const float* a;
  const Sums* sums;
  float (*acc)[kPanel][kLanes];
  __m512 scales[2];
};

/// Stores tile `sum` of the last step: as late as the tile is needed again, and one by one, since a store waits for the
/// products and what follows it waits too.
template <int sum>
[[gnu::always_inline]] inline void store_tile(const Step& step) {
  if (step.tiles > sum % 2) tile_store<sum>((*step.sums)[sum / 2][sum % 2], 64);
}

/// Multiplies `products` times 64 k; between the products, which keep the tile unit busy, stores the sums of `before`,
/// the last step, and finishes `two_before`, of two tiles where `is_pair`. x0, x1: the first row of each tile. Tiles 0
/// to 3: sums, of group g and tile t in 2 * g + t; 4 and 5: activations; 6 and 7: weights.
template <int tiles, bool is_pair>
void multiply(const std::byte* x0, const std::byte* x1, int64_t row_bytes, int products, const std::byte* w0,
              const std::byte* w1, const Step& before, const Step& two_before) {
  const Finish finish(two_before);
#pragma GCC unroll 4
  for (int i = 0; i < kUnitK / 64; ++i) {
    const bool multiplies = i < products;
    if (multiplies) {
      tile_load<4>(x0 + 64 * i, row_bytes);
      tile_load<6>(w0 + kTileBytes * i, 64);
    }
    if (i == 0) store_tile<0>(before);
    if (i == 0) tile_zero<0>();
    if (multiplies) tile_dot_ss<0, 4, 6>();
    add_part<is_pair>(finish, 4 * i);
    if (tiles == 2 && multiplies) tile_load<5>(x1 + 64 * i, row_bytes);
    if (i == 0) store_tile<1>(before);
    if (i == 0) tile_zero<1>();
    if (tiles == 2 && multiplies) tile_dot_ss<1, 5, 6>();
    add_part<is_pair>(finish, 4 * i + 1);
    if (multiplies) tile_load<7>(w1 + kTileBytes * i, 64);
    if (i == 0) store_tile<2>(before);
    if (i == 0) tile_zero<2>();
    if (multiplies) tile_dot_ss<2, 4, 7>();
    add_part<is_pair>(finish, 4 * i + 2);
    if (i == 0) store_tile<3>(before);
    if (i == 0) tile_zero<3>();
    if (tiles == 2 && multiplies) tile_dot_ss<3, 5, 7>();
    add_part<is_pair>(finish, 4 * i + 3);
  }
}

void gather_scales(const MatmulArgs& args, const Part& part, float* a) {
  const int64_t row_bytes = act_row_bytes(args.x.form, args.x.k), scale_at = act_scale_offset(args.x.form, args.x.k);
  for (int64_t t = 0; t < part.tiles; ++t) {
    for (int r = 0; r < kTileRows; ++r) {
      const std::byte* scales = args.x.data + (part.row_of_tile(t) + r) * row_bytes + scale_at;
      for (int64_t u = part.first_unit; u < part.last_unit; ++u) {
        const int64_t at = ((u - part.first_unit) * part.tiles + t) * kTileRows + r;
        a[at] = r < part.height ? load_f32(scales + 4 * u) : 0.0f;
      }
    }
  }
}

/// Groups [first, first + count), at most kPanel, to sums that begin at `acc`. fetch: as multiply_band calls it.
template <DType T, class Fetch>
void multiply_panel(const MatmulArgs& args, int64_t first, int count, const Part& part, Scratch& scratch, float* acc,
                    const Fetch& fetch) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const int64_t k = args.x.k, row_bytes = act_row_bytes(args.x.form, k);
  const int64_t group_bytes = requant_group_bytes(kFormat, k), scales_at = interleaved_group_bytes(kFormat, k);
  const std::byte* weights = args.w.data + first * group_bytes;
  Step before, two_before;
  int turn = 0;
  for (int64_t unit = part.first_unit; unit < part.last_unit; ++unit) {
    const int64_t rest = (k - unit * kUnitK) / kSlabK;
    const int slabs = static_cast<int>(rest < kUnitSlabs ? rest : kUnitSlabs);
    const int products = (slabs + 1) / 2;  // half a product: zeros follow the activations
    const auto scales_of = [&](int g) { return weights + g * group_bytes + scales_at + unit * kRequantScaleBytes; };
    for (int g = 0; g < count; ++g) {
      requant_unit<T, false>(weights + g * group_bytes + unit * kFormat.unit_bytes, slabs, scales_of(g), scratch.w8[g]);
    }
    asm volatile("" ::: "memory");  // loads of tiles do not tell the compiler what they read
    for (int64_t t = 0; t < part.tiles; t += 2) {
      const int tiles = part.tiles - t > 1 ? 2 : 1;
      fetch(unit, t);
      const std::byte* x = args.x.data + unit * kUnitK;
      const std::byte* x0 = x + part.row_of_tile(t) * row_bytes;
      const std::byte* x1 = x + part.row_of_tile(t + tiles - 1) * row_bytes;
      for (int g = 0; g < count; g += 2, turn ^= 1) {
        const int second = g + 1 < count ? g + 1 : g;  // a group alone is multiplied twice
        Step step;
        step.tiles = tiles;
        step.a = scratch.a + ((unit - part.first_unit) * part.tiles + t) * kTileRows;
        step.r[0] = scales_of(g);
        step.r[1] = scales_of(second);
        step.sums = &scratch.sums[turn];
        step.acc = reinterpret_cast<float(*)[kPanel][kLanes]>(acc + (t * kTileRows * kPanel + g) * kLanes);
        const auto fn = tiles == 1              ? multiply<1, false>
                        : two_before.tiles == 2 ? multiply<2, true>
                                                : multiply<2, false>;
        fn(x0, x1, row_bytes, products, scratch.w8[g], scratch.w8[second], before, two_before);
        two_before = before;
        before = step;
      }
    }
  }
  store_tile<0>(before);
  store_tile<1>(before);
  store_tile<2>(before);
  store_tile<3>(before);
  for (const Step* last : {&two_before, &before}) {
    const Finish finish(*last);
    for (int p = 0; p < kFinishParts; ++p) add_part<false>(finish, p);
  }
}

}  // namespace

template <DType T>
void matmul_r8x256(const MatmulArgs& args, RowRange groups) noexcept {
  if (args.x.rows < kLeastRows) {
    avx512::matmul_r8x256<T>(args, groups);
    return;
  }
  const int height = tile_height(args);
  configure_tiles(height, 64);
  Scratch scratch;
  if (height < kTileRows) __builtin_memset(scratch.sums, 0, sizeof(scratch.sums));  // are computed with, not used
  const int64_t group_bytes = requant_group_bytes(interleaved_format(T), args.x.k);
  for_parts(args, scratch.outliers, [&](const Part& part) {
    gather_scales(args, part, scratch.a);
    for_bands(groups, [&](int64_t first, int64_t last) {
      multiply_band<T, kPanel, kPanel, kMaxPassRows>(
          args, first, last, part, group_bytes, scratch.acc, scratch.outliers,
          [&](int64_t panel_first, int count, float* acc, const auto& fetch) {
            multiply_panel<T>(args, panel_first, count, part, scratch, acc, fetch);
          });
    });
  });
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
