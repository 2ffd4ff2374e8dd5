// Products of interleaved weights with int8 activations by AMX tiles: recipe q8x256 (matmul.h), layout kInterleaved16.
//
// Scales go into the weights: a super-block of 16 neurons becomes two planes of bytes, each in tiles of 64 k by 16
// neurons, and isum = sum low * x + (sum high * x << shift), exact integers:
//   codes of 4 and 5 bits   low = code * (scale & 7), high = code * (scale >> 3), unsigned, at most 31 * 7; shift 3
//   others                  w = q * scale, exact in 16 bits, split into low, unsigned, and high, signed; shift 8
// Formats whose w fits a byte have one plane. Minima multiply sums of x in vectors of 16-bit pairs. Largest values: a
// plane's sum 255 * 127 * 256 < 2^23; isum < 2^30; msum 63 * 127 * 256 < 2^21.
//
// Order: panels of two groups, super-blocks (expanded into the L1 cache), pairs of tiles of rows, groups of the panel:
// so that activations come from the L2 cache once for both groups. A pair of tiles keeps four sums going, as a
// product's latency is that of three others. They are stored at the begin of the next step, and added up during the one
// after it.
#include <immintrin.h>

#include "ops/interleaved_layout.h"
#include "ops/matmul_interleaved_avx512.h"
#include "ops/matmul_kernels.h"
#include "ops/matmul_parts_amx.h"
#include "ops/tile_registers_amx.h"

namespace headrace::amx {
namespace {

constexpr int64_t kLeastRows = 5;  // below, vpdpbusd is faster
constexpr int64_t kFewTiles = 4;   // up to so many, weights are fetched while they are expanded, and group by group
constexpr int kTilesOfUnit = kUnitK / 64;
constexpr int kPanel = 2;  // groups that are expanded together: the second one reads the activations from the L1 cache

/// Whether halves of the scales, of 6 bits, make the planes: a code times one fits a byte, so two come of one product.
consteval bool splits_scale(DType dtype) { return dtype == DType::kQ4_K || dtype == DType::kQ5_K; }
/// -q * scale of Q3_K lies in [-128, 124], q * scale of Q2_K in [0, 45].
consteval bool has_high_plane(DType dtype) { return dtype != DType::kQ2_K && dtype != DType::kQ3_K; }
consteval bool is_negated(DType dtype) { return dtype == DType::kQ3_K; }

/// Minima of a super-block, two in a lane: a vector for each pair of its sub-blocks.
template <DType T>
constexpr int kMinVectors = interleaved_format(T).has_min ? kUnitK / interleaved_format(T).scale_elems / 2 : 0;
constexpr int kMostMinVectors = 8;

/// A super-block of a group, ready to multiply.
struct Planes {
  alignas(64) uint8_t low[kTilesOfUnit * kTileBytes];
  alignas(64) uint8_t high[kTilesOfUnit * kTileBytes];
};

/// Products of a pair of tiles.
struct Sums {
  alignas(64) int32_t low[2][kTileRows][kLanes];
  alignas(64) int32_t high[2][kTileRows][kLanes];
};

/// One or two tiles of rows times one super-block of a group.
struct Step {
  int tiles = 0;
  const float* a = nullptr;         ///< scales of the activations, [tiles][kTileRows]
  const int16_t* x_sums = nullptr;  ///< of the activations, [tiles][kTileRows][sub-blocks]
  const std::byte* d = nullptr;
  const __m512i* mins = nullptr;  ///< [kMinVectors]
  Sums* sums = nullptr;
  float (*acc)[kPanel][kLanes] = nullptr;  ///< [tiles * kTileRows], from the group on
};

/// mins: [kMinVectors]. fetches: whether to fetch what follows the unit.
template <DType T>
void expand_unit(const std::byte* unit, Planes& planes, __m512i* mins_at, bool fetches) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  constexpr int kSlabs = kUnitK / kSlabK, kN = kFormat.scale_elems, kVectors = kUnitK / kN / 4;
  constexpr int kSlabsOfVector = kSlabs / kVectors, kRowsOfScale = kN / 4;
  const std::byte* scales_at = unit + kSlabs * kFormat.slab_bytes;
  const __m512i low_bytes = _mm512_set1_epi16(0xff), high_bytes = _mm512_slli_epi16(low_bytes, 8);
  for (int v = 0; v < kVectors; ++v) {
    __m512i scales = _mm512_loadu_si512(scales_at + 64 * v), mins = scales;
    if constexpr (kFormat.nibble_scales) {
      mins = and_shifted_left(scales, -4, 15);
      scales = and_shifted_left(scales, 0, 15);
    } else if constexpr (kFormat.has_min) {
      mins = _mm512_loadu_si512(scales_at + 64 * (kVectors + v));
    }
#pragma GCC unroll 4
    for (int i = 0; i < kSlabsOfVector; ++i) {
      const int s = v * kSlabsOfVector + i;
      const int first = kN == 16 ? 2 * i : i, second = kN == 16 ? 2 * i + 1 : i;
      if constexpr (kN == 16 && kFormat.has_min) {
        mins_at[s] = byte_pair_of_lane<false>(mins, first, second);
      } else if constexpr (kFormat.has_min) {
        if (i % 2 == 0) mins_at[s / 2] = byte_pair_of_lane<false>(mins, i, i + 1);
      }
      if (fetches) fetch(unit + s * (kFormat.unit_bytes / kSlabs), kFormat.unit_bytes / kSlabs);
      __m512i w[kKRows];
      expand_slab<T>(unit + s * kFormat.slab_bytes, w);
      if constexpr (splits_scale(T)) {
        const __m512i low = byte_pair_of_lane<false>(and_shifted_left(scales, 0, 7), i, i);
        const __m512i high = byte_pair_of_lane<false>(and_shifted_left(scales, -3, 7), i, i);
#pragma GCC unroll 8
        for (int r = 0; r < kKRows; ++r) {
          _mm512_store_si512(planes.low + 64 * (kKRows * s + r), _mm512_mullo_epi16(w[r], low));
          _mm512_store_si512(planes.high + 64 * (kKRows * s + r), _mm512_mullo_epi16(w[r], high));
        }
        continue;
      }
#pragma GCC unroll 8
      for (int r = 0; r < kKRows; ++r) {
        const int scale = r < kRowsOfScale ? first : second;
        const __m512i even_scale = byte_pair_of_lane<false>(scales, scale, scale),
                      odd_scale = _mm512_slli_epi16(even_scale, 8);
        __m512i even = _mm512_maddubs_epi16(w[r], even_scale), odd = _mm512_maddubs_epi16(w[r], odd_scale);
        if constexpr (offset_of(kFormat) != 0) {
          const __m512i offset =
              _mm512_maddubs_epi16(_mm512_set1_epi8(static_cast<char>(offset_of(kFormat))), even_scale);
          even = is_negated(T) ? _mm512_sub_epi16(offset, even) : _mm512_sub_epi16(even, offset);
          odd = is_negated(T) ? _mm512_sub_epi16(offset, odd) : _mm512_sub_epi16(odd, offset);
        }
        constexpr int kAndOr = 0xea;  // (a & b) | c
        const int at = 64 * (kKRows * s + r);
        _mm512_store_si512(planes.low + at,
                           _mm512_ternarylogic_epi32(low_bytes, even, _mm512_slli_epi16(odd, 8), kAndOr));
        if constexpr (has_high_plane(T)) {
          _mm512_store_si512(planes.high + at,
                             _mm512_ternarylogic_epi32(high_bytes, odd, _mm512_srli_epi16(even, 8), kAndOr));
        }
      }
    }
  }
  asm volatile("" ::: "memory");  // loads of tiles do not tell the compiler what they read
}

/// isum of a row.
template <DType T>
inline __attribute__((always_inline)) __m512i sum_of(const Sums& sums, int t, int r) {
  const __m512i low = _mm512_load_si512(sums.low[t][r]);
  if constexpr (has_high_plane(T)) {
    return _mm512_add_epi32(low, _mm512_slli_epi32(_mm512_load_si512(sums.high[t][r]), splits_scale(T) ? 3 : 8));
  } else {
    return is_negated(T) ? _mm512_sub_epi32(_mm512_setzero_si512(), low) : low;
  }
}

/// sums += pairs of a lane . one pair for all lanes. As an intrinsic g++ 12 would load the pair into a register first,
/// and what a step costs is its number of instructions.
inline __attribute__((always_inline)) void add_pair_dots(__m512i& sums, __m512i pairs, const int16_t* pair) {
  using Pair [[gnu::may_alias]] = int32_t;
  asm("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sums) : "v"(pairs), "m"(*reinterpret_cast<const Pair*>(pair)));
}

/// What finishes a step, in registers: stores to the accumulators might change anything in memory.
template <DType T>
struct Finish {
  static constexpr bool kHasMin = interleaved_format(T).has_min;
  explicit Finish(const Step& step)
      : tiles(step.tiles), a(step.a), x_sums(step.x_sums), sums(step.sums), acc(step.acc) {
    if (tiles == 0) return;
    d = load_f16(step.d);
    if constexpr (kHasMin) dmin = load_f16(step.d + kGroupF16Bytes);
#pragma GCC unroll 8
    for (int z = 0; z < kMinVectors<T>; ++z) mins[z] = step.mins[z];
  }

  /// Adds `rows` rows of the sums, from row `first` of tile `t` on, to the accumulators.
  template <int rows>
  inline __attribute__((always_inline)) void add_rows(int t, int first) const {
#pragma GCC unroll 4
    for (int r = first; r < first + rows; ++r) {
      const int at = t * kTileRows + r;
      const __m512 scale = _mm512_set1_ps(a[at]), isum = _mm512_cvtepi32_ps(sum_of<T>(*sums, t, r));
      float* acc_at = acc[at][0];
      __m512 sum = _mm512_fmadd_ps(_mm512_mul_ps(d, scale), isum, _mm512_load_ps(acc_at));
      if constexpr (kHasMin) {
        const int16_t* pairs = x_sums + at * 2 * kMinVectors<T>;
        __m512i msum = _mm512_setzero_si512();
#pragma GCC unroll 8
        for (int z = 0; z < kMinVectors<T>; ++z) add_pair_dots(msum, mins[z], pairs + 2 * z);
        sum = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, scale), _mm512_cvtepi32_ps(msum), sum);
      }
      _mm512_store_ps(acc_at, sum);
    }
  }

  int tiles;
  const float* a;
  const int16_t* x_sums;
  const Sums* sums;
  float (*acc)[kPanel][kLanes];
  __m512 d, dmin;
  __m512i mins[kHasMin ? kMinVectors<T> : 1];
};

// Tiles 0 and 1: sums of the low plane, 2 and 3: of the high one; 4 and 5: activations; 6 and 7: the planes.
template <DType T, int sum, int x, int plane>
inline __attribute__((always_inline)) void tile_dot() {
  constexpr bool kIsSigned = sum < 2 ? is_negated(T) : !splits_scale(T);
  if constexpr (kIsSigned) {
    tile_dot_ss<sum, x, plane>();
  } else {
    tile_dot_su<sum, x, plane>();
  }
}

/// Stores tile `sum` of the last step: as late as the tile is needed again, and one by one, since a store waits for the
/// products and what follows it waits too.
template <DType T, int sum>
inline __attribute__((always_inline)) void store_tile(const Step& step) {
  if constexpr (sum < 2 || has_high_plane(T)) {
    if (step.tiles > sum % 2) tile_store<sum>(sum < 2 ? step.sums->low[sum] : step.sums->high[sum - 2], 64);
  }
}

/// Multiplies, and between the products, which keep the tile unit busy, stores the sums of `before`, the last step, and
/// finishes `two_before`, of two tiles where `is_pair`. x0, x1: the first row of each tile.
template <DType T, int tiles, bool is_pair>
void multiply(const std::byte* x0, const std::byte* x1, int64_t row_bytes, const Planes& planes, const Step& before,
              const Step& two_before) {
  constexpr bool kHasHigh = has_high_plane(T);
  const Finish<T> finish(two_before);
#pragma GCC unroll 4
  for (int i = 0; i < kTilesOfUnit; ++i) {
    tile_load<4>(x0 + 64 * i, row_bytes);
    tile_load<6>(planes.low + kTileBytes * i, 64);
    if (i == 0) store_tile<T, 0>(before);
    if (i == 0) tile_zero<0>();
    tile_dot<T, 0, 4, 6>();
    add_part<is_pair>(finish, 4 * i);
    if constexpr (tiles == 2) tile_load<5>(x1 + 64 * i, row_bytes);
    if (i == 0) store_tile<T, 1>(before);
    if (i == 0) tile_zero<1>();
    if constexpr (tiles == 2) tile_dot<T, 1, 5, 6>();
    add_part<is_pair>(finish, 4 * i + 1);
    if constexpr (kHasHigh) tile_load<7>(planes.high + kTileBytes * i, 64);
    if (i == 0) store_tile<T, 2>(before);
    if (i == 0) tile_zero<2>();
    if constexpr (kHasHigh) tile_dot<T, 2, 4, 7>();
    add_part<is_pair>(finish, 4 * i + 2);
    if (i == 0) store_tile<T, 3>(before);
    if (i == 0) tile_zero<3>();
    if constexpr (kHasHigh && tiles == 2) tile_dot<T, 3, 5, 7>();
    add_part<is_pair>(finish, 4 * i + 3);
  }
}

struct Scratch {
  Planes planes[kPanel];
  __m512i mins[3][kPanel][kMostMinVectors];  ///< in turn: of this super-block and of the two before
  Sums sums[2];                              ///< in turn: of this step, stored in the next, and of the one before
  alignas(64) float acc[kBandFloats];
  PartOutliers outliers;
  alignas(64) float a[kChunkUnits];
  alignas(64) int16_t x_sums[kChunkUnits * 2 * kMostMinVectors];
};

/// Gathers what stands apart in the records, for each super-block of a part in the order of the tiles' rows: scales,
/// and for the minima the sums of x.
template <DType T>
void gather(const MatmulArgs& args, const Part& part, Scratch& scratch) {
  constexpr int kSums = 2 * kMinVectors<T>;
  const int64_t k = args.x.k, row_bytes = act_row_bytes(args.x.form, k);
  const int64_t scale_at = act_scale_offset(args.x.form, k), sum_at = act_sum_offset(args.x.form, k);
  for_rows(part, [&](int64_t place, int64_t row) {
    const std::byte* record = args.x.data + row * row_bytes;
    for (int64_t b = part.first_unit; b < part.last_unit; ++b) {
      const int64_t at = (b - part.first_unit) * part.tiles * kTileRows + place;
      scratch.a[at] = load_f32(record + scale_at + 4 * b);
      if constexpr (kSums > 0) {
        const __m256i sums = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(record + sum_at + 32 * b));
        int16_t* out = scratch.x_sums + at * kSums;
        if constexpr (kSums == 16) {
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), sums);
        } else {
          const __m256i pairs = _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
          _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtepi32_epi16(pairs));
        }
      }
    }
  });
}

/// Groups [first, first + count), at most kPanel, to sums that begin at `acc`. fetch: as multiply_band calls it.
template <DType T, class Fetch>
void multiply_panel(const MatmulArgs& args, int64_t first, int count, const Part& part, Scratch& scratch, float* acc,
                    const Fetch& fetch) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const int64_t row_bytes = act_row_bytes(args.x.form, args.x.k);
  const int64_t group_bytes = args.w.k / kUnitK * kFormat.unit_bytes;
  const std::byte* weights = args.w.data + first * group_bytes;
  const bool few = part.tiles <= kFewTiles;
  Step before, two_before;
  int turn = 0;
  for (int64_t b = part.first_unit; b < part.last_unit; ++b) {
    const std::byte* unit = weights + b * kFormat.unit_bytes;
    const std::byte* next = b + 1 < part.last_unit
                                ? unit + kFormat.unit_bytes
                                : weights + kPanel * group_bytes + part.first_unit * kFormat.unit_bytes;
    __m512i(*mins)[kMostMinVectors] = scratch.mins[b % 3];
    for (int g = 0; g < count; ++g) expand_unit<T>(unit + g * group_bytes, scratch.planes[g], mins[g], few);
    for (int64_t t = 0; t < part.tiles; t += 2) {
      const int tiles = part.tiles - t > 1 ? 2 : 1;
      fetch(b, t);
      const int64_t at = ((b - part.first_unit) * part.tiles + t) * kTileRows;
      const std::byte* x = args.x.data + kUnitK * b;
      const std::byte *x0 = x + part.row_of_tile(t) * row_bytes, *x1 = x + part.row_of_tile(t + tiles - 1) * row_bytes;
      for (int g = 0; g < count; ++g, turn ^= 1) {
        if (!few) fetch_part(next + g * group_bytes, kFormat.unit_bytes, t, part.tiles);
        Step step;
        step.tiles = tiles;
        step.a = scratch.a + at;
        step.x_sums = scratch.x_sums + at * 2 * kMinVectors<T>;
        step.d = unit + g * group_bytes + kUnitK / kSlabK * kFormat.slab_bytes + kFormat.scale_bytes;
        step.mins = mins[g];
        step.sums = &scratch.sums[turn];
        step.acc = reinterpret_cast<float(*)[kPanel][kLanes]>(acc + (t * kTileRows * kPanel + g) * kLanes);
        const auto fn = tiles == 1              ? multiply<T, 1, false>
                        : two_before.tiles == 2 ? multiply<T, 2, true>
                                                : multiply<T, 2, false>;
        fn(x0, x1, row_bytes, scratch.planes[g], before, two_before);
        two_before = before;
        before = step;
      }
    }
  }
  store_tile<T, 0>(before);
  store_tile<T, 1>(before);
  store_tile<T, 2>(before);
  store_tile<T, 3>(before);
  for (const Step* last : {&two_before, &before}) {
    const Finish<T> finish(*last);
    for (int p = 0; p < kFinishParts; ++p) add_part<false>(finish, p);
  }
}

}  // namespace

template <DType T>
void matmul_interleaved(const MatmulArgs& args, RowRange groups) noexcept {
  if (args.x.rows < kLeastRows) {
    avx512::matmul_interleaved<T>(args, groups);
    return;
  }
  const int height = tile_height(args);
  configure_tiles(height, 64);
  Scratch scratch;
  if (height < kTileRows) {  // rows beyond are computed with, not used
    __builtin_memset(scratch.sums, 0, sizeof(scratch.sums));
    __builtin_memset(scratch.a, 0, sizeof(scratch.a));
    __builtin_memset(scratch.x_sums, 0, sizeof(scratch.x_sums));
  }
  const int64_t group_bytes = args.w.k / kUnitK * interleaved_format(T).unit_bytes;
  for_parts(args, scratch.outliers, [&](const Part& part) {
    gather<T>(args, part, scratch);
    const bool few = part.tiles <= kFewTiles;
    const auto multiply = [&](int64_t first, int count, float* acc, const auto& fetch) {
      multiply_panel<T>(args, first, count, part, scratch, acc, fetch);
    };
    const auto run = few ? multiply_band<T, 1, kPanel, kFewTiles * kTileRows, decltype(multiply)>
                         : multiply_band<T, kPanel, kPanel, kMaxPassRows, decltype(multiply)>;
    for_bands(groups, [&](int64_t first, int64_t last) {
      run(args, first, last, part, group_bytes, scratch.acc, scratch.outliers, multiply);
    });
  });
  _tile_release();
}
template void matmul_interleaved<DType::kQ2_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ3_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ4_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ5_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ6_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kIQ4_XS>(const MatmulArgs&, RowRange) noexcept;

}  // namespace headrace::amx
