// Products of interleaved weights with int8 activations by AMX tiles: recipe q8x256 (matmul.h), layout kInterleaved16.
//
// Scales go into the weights: a super-block of 16 neurons becomes two planes of bytes, each in tiles of 64 k by 16
// neurons, and isum = sum low * x + (sum high * x << shift), exact integers:
//   codes of 4 and 5 bits   low = code * (scale & 7), high = code * (scale >> 3), unsigned, at most 31 * 7; shift 3
//   others                  w = q * scale, exact in 16 bits, split into low, unsigned, and high, signed; shift 8
// Formats whose w fits a byte have one plane. Minima multiply sums of x in a tile of bf16. Largest values: a plane's
// sum 255 * 127 * 256 < 2^23; isum < 2^30.
//
// Order: groups, super-blocks (expanded into the L1 cache), tiles of rows. Sums of a tile of rows are stored in the
// middle of the next tile's products, and added up during those of the one after it: stored at once, they would hold up
// the loads behind them until the tile unit is done, a fifth of the time.
#include <immintrin.h>

#include "ops/interleaved_layout.h"
#include "ops/matmul_interleaved_avx512.h"
#include "ops/matmul_kernels.h"
#include "ops/matmul_tiles_amx.h"
#include "ops/tile_registers_amx.h"

namespace headrace::amx {
namespace {

constexpr int64_t kLeastRows = 5;  // below, vpdpbusd is faster
constexpr int kTilesOfUnit = kUnitK / 64;
constexpr int64_t kMaxPassUnits = 4096;  // rows times super-blocks: 272 KiB of scales and sums on the stack
constexpr int64_t kMaxK = kMaxPassUnits / kTileRows * kUnitK;

/// Whether halves of the scales, of 6 bits, make the planes: a code times one fits a byte, so two come of one product.
consteval bool splits_scale(DType dtype) { return dtype == DType::kQ4_K || dtype == DType::kQ5_K; }
/// -q * scale of Q3_K lies in [-128, 124], q * scale of Q2_K in [0, 45].
consteval bool has_high_plane(DType dtype) { return dtype != DType::kQ2_K && dtype != DType::kQ3_K; }
consteval bool is_negated(DType dtype) { return dtype == DType::kQ3_K; }

/// A super-block of a group, ready to multiply.
struct Planes {
  alignas(64) uint8_t low[kTilesOfUnit * kTileBytes];
  alignas(64) uint8_t high[kTilesOfUnit * kTileBytes];
  alignas(64) uint8_t mins[kTileBytes];  ///< row i: of 16-block i, twice in bf16
};

/// Products of a tile of rows.
struct Sums {
  alignas(64) int32_t low[kTileRows][kLanes];
  alignas(64) int32_t high[kTileRows][kLanes];
  alignas(64) float mins[kTileRows][kLanes];
};

/// A tile of rows times one super-block.
struct Step {
  const float* a = nullptr;  ///< scales of the activations, [kTileRows]
  const std::byte* d = nullptr;
  Sums* sums = nullptr;  ///< null: no step
  float* acc = nullptr;  ///< [kTileRows][kLanes]
};

template <DType T>
void expand_unit(const std::byte* unit, Planes& planes) {
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
      fetch(unit + s * (kFormat.unit_bytes / kSlabs), kFormat.unit_bytes / kSlabs);
      const int first = kN == 16 ? 2 * i : i, second = kN == 16 ? 2 * i + 1 : i;
      if constexpr (kFormat.has_min) {
        for (int half = 0; half < 2; ++half) {
          const __m512 min = _mm512_cvtepi32_ps(byte_of_lane<false>(mins, half == 0 ? first : second));
          const __m512i bits = _mm512_castps_si512(min);
          _mm512_store_si512(planes.mins + 64 * (2 * s + half), _mm512_or_si512(bits, _mm512_srli_epi32(bits, 16)));
        }
      }
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
inline __attribute__((always_inline)) __m512i sum_of(const Sums& sums, int r) {
  const __m512i low = _mm512_load_si512(sums.low[r]);
  if constexpr (has_high_plane(T)) {
    return _mm512_add_epi32(low, _mm512_slli_epi32(_mm512_load_si512(sums.high[r]), splits_scale(T) ? 3 : 8));
  } else {
    return is_negated(T) ? _mm512_sub_epi32(_mm512_setzero_si512(), low) : low;
  }
}

/// Adds a step's sums to the accumulators: `quarter` (0 to 3) of its rows.
template <DType T>
inline __attribute__((always_inline)) void finish(const Step& step, int quarter) {
  constexpr bool kHasMin = interleaved_format(T).has_min;
  constexpr int kRows = kTileRows / 4;
  if (step.sums == nullptr) return;
  const __m512 d = load_f16(step.d);
  const __m512 dmin = kHasMin ? load_f16(step.d + kGroupF16Bytes) : d;
#pragma GCC unroll 4
  for (int r = kRows * quarter; r < kRows * (quarter + 1); ++r) {
    const __m512 a = _mm512_set1_ps(step.a[r]), isum = _mm512_cvtepi32_ps(sum_of<T>(*step.sums, r));
    __m512 acc = _mm512_fmadd_ps(_mm512_mul_ps(d, a), isum, _mm512_load_ps(step.acc + r * kLanes));
    if constexpr (kHasMin) acc = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, a), _mm512_load_ps(step.sums->mins[r]), acc);
    _mm512_store_ps(step.acc + r * kLanes, acc);
  }
}

// Tiles 0 and 1: sums of the planes in even steps, 2 and 3: in odd ones; 4: activations; 5: sums of the minima; 6 and
// 7: the planes.
constexpr int kActs = 4, kMins = 5, kLow = 6, kHigh = 7;

/// `turn`: that of the step.
template <DType T, int turn>
inline __attribute__((always_inline)) void store_sums(const Step& step) {
  if (step.sums == nullptr) return;
  tile_store<2 * turn>(step.sums->low, 64);
  if constexpr (has_high_plane(T)) tile_store<2 * turn + 1>(step.sums->high, 64);
}

/// Adds 64 k. x: the tile's first row.
template <DType T, int turn>
inline __attribute__((always_inline)) void multiply_64(const std::byte* x, int64_t row_bytes, const Planes& planes,
                                                       int i) {
  tile_load<kActs>(x + 64 * i, row_bytes);
  tile_load<kLow>(planes.low + kTileBytes * i, 64);
  if constexpr (is_negated(T)) {
    tile_dot_ss<2 * turn, kActs, kLow>();
  } else {
    tile_dot_su<2 * turn, kActs, kLow>();
  }
  if constexpr (has_high_plane(T)) {
    tile_load<kHigh>(planes.high + kTileBytes * i, 64);
    if constexpr (splits_scale(T)) {
      tile_dot_su<2 * turn + 1, kActs, kHigh>();
    } else {
      tile_dot_ss<2 * turn + 1, kActs, kHigh>();
    }
  }
}

/// Multiplies, and between the products, which keep the tile unit busy, stores the sums of `before`, the last step, and
/// finishes `two_before`. min_sums: of the tile's first row.
template <DType T, int turn>
inline __attribute__((always_inline)) void multiply(const std::byte* x, int64_t row_bytes, const uint8_t* min_sums,
                                                    const Planes& planes, Sums& sums, const Step& before,
                                                    const Step& two_before) {
  constexpr bool kHasMin = interleaved_format(T).has_min;
  if constexpr (kHasMin) {
    tile_zero<kMins>();
    tile_load<kActs>(min_sums, 64);
    tile_load<kLow>(planes.mins, 64);
    tile_dot_bf16<kMins, kActs, kLow>();
  }
  tile_zero<2 * turn>();
  if constexpr (has_high_plane(T)) tile_zero<2 * turn + 1>();
  multiply_64<T, turn>(x, row_bytes, planes, 0);
  finish<T>(two_before, 0);
  multiply_64<T, turn>(x, row_bytes, planes, 1);
  finish<T>(two_before, 1);
  store_sums<T, 1 - turn>(before);
  multiply_64<T, turn>(x, row_bytes, planes, 2);
  finish<T>(two_before, 2);
  if constexpr (kHasMin) tile_store<kMins>(sums.mins, 64);
  multiply_64<T, turn>(x, row_bytes, planes, 3);
  finish<T>(two_before, 3);
}

struct Scratch {
  Planes planes;
  Sums sums[3];  ///< in turn: of this step and of the two before
  InPlaceOutliers outliers;
  alignas(64) float acc[kInPlaceRows][kLanes];
  alignas(64) float a[kMaxPassUnits];
  alignas(64) uint8_t min_sums[kMaxPassUnits][64];
};

/// Gathers what stands apart in the records, for each super-block in the order of the tiles' rows: scales, and for the
/// minima the sums of x as pairs of bf16, sum = 16 * (sum >> 4) + (sum & 15): both exact, as |sum| <= 16 * 127. So are
/// their products with minima of 6 bits and the sums of these, below 2^21.
template <DType T>
void gather(const MatmulArgs& args, const Pass& pass, Scratch& scratch) {
  const int64_t k = args.x.k, blocks = k / kUnitK, row_bytes = act_row_bytes(args.x.form, k);
  const int64_t scale_at = act_scale_offset(args.x.form, k), sum_at = act_sum_offset(args.x.form, k);
  const __m512i low_bits = _mm512_set1_epi32(15);
  // Rows beyond the height are computed with.
  if (pass.height < kTileRows) __builtin_memset(scratch.a, 0, static_cast<size_t>(blocks) * sizeof(float) * kTileRows);
  for (int64_t t = 0; t < pass.tiles; ++t) {
    for (int r = 0; r < pass.height; ++r) {
      const std::byte* record = args.x.data + (pass.row_of_tile(t) + r) * row_bytes;
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t at = (b * pass.tiles + t) * kTileRows + r;
        scratch.a[at] = load_f32(record + scale_at + 4 * b);
        if constexpr (interleaved_format(T).has_min) {
          const auto* sums_at = reinterpret_cast<const __m256i*>(record + sum_at + 32 * b);
          const __m512i sums = _mm512_cvtepi16_epi32(_mm256_loadu_si256(sums_at));
          const __m512 low = _mm512_cvtepi32_ps(_mm512_and_si512(sums, low_bits));
          const __m512 high = _mm512_cvtepi32_ps(_mm512_andnot_si512(low_bits, sums));
          const __m512i pairs =
              _mm512_or_si512(_mm512_castps_si512(low), _mm512_srli_epi32(_mm512_castps_si512(high), 16));
          _mm512_store_si512(scratch.min_sums[at], pairs);
        }
      }
    }
  }
  asm volatile("" ::: "memory");  // as in expand_unit
}

template <DType T>
void multiply_group(const MatmulArgs& args, int64_t group, const Pass& pass, Scratch& scratch) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const int64_t k = args.w.k, blocks = k / kUnitK;
  const int64_t row_bytes = act_row_bytes(args.x.form, k);
  const std::byte* weights = args.w.data + group * blocks * kFormat.unit_bytes;
  for (int64_t r = 0; r < pass.tiles * kTileRows; ++r) _mm512_store_ps(scratch.acc[r], _mm512_setzero_ps());

  Step before, two_before;
  int turn = 0, slot = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    const std::byte* unit = weights + block * kFormat.unit_bytes;
    expand_unit<T>(unit, scratch.planes);
    for (int64_t t = 0; t < pass.tiles; ++t, turn ^= 1) {
      const int64_t at = (block * pass.tiles + t) * kTileRows;
      const Step step{.a = scratch.a + at,
                      .d = unit + kUnitK / kSlabK * kFormat.slab_bytes + kFormat.scale_bytes,
                      .sums = &scratch.sums[slot],
                      .acc = scratch.acc[t * kTileRows]};
      slot = slot == 2 ? 0 : slot + 1;
      const std::byte* x = args.x.data + pass.row_of_tile(t) * row_bytes + kUnitK * block;
      if (turn == 0) {
        multiply<T, 0>(x, row_bytes, scratch.min_sums[at], scratch.planes, *step.sums, before, two_before);
      } else {
        multiply<T, 1>(x, row_bytes, scratch.min_sums[at], scratch.planes, *step.sums, before, two_before);
      }
      two_before = before;
      before = step;
    }
  }
  if (turn == 1) {
    store_sums<T, 0>(before);
  } else {
    store_sums<T, 1>(before);
  }
  for (int quarter = 0; quarter < 4; ++quarter) finish<T>(two_before, quarter);
  for (int quarter = 0; quarter < 4; ++quarter) finish<T>(before, quarter);
  store_rows<T>(args, group, pass, scratch.acc, scratch.outliers);
}

}  // namespace

template <DType T>
void matmul_interleaved(const MatmulArgs& args, RowRange groups) noexcept {
  if (args.x.rows < kLeastRows || args.x.k > kMaxK) {
    avx512::matmul_interleaved<T>(args, groups);
    return;
  }
  const int height = tile_height(args);
  configure_tiles(height, 64);
  Scratch scratch;
  __builtin_memset(scratch.sums, 0, sizeof(scratch.sums));  // as scales in gather
  Pass pass;
  pass.height = height;
  while (next_pass(args, pass)) {
    gather<T>(args, pass, scratch);
    scratch.outliers.collect(args.x, pass.first, pass.last, [&](int64_t row) { return pass.position_of(row); });
    for (int64_t g = groups.begin; g < groups.end; ++g) multiply_group<T>(args, g, pass, scratch);
  }
  _tile_release();
}
template void matmul_interleaved<DType::kQ2_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ3_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ4_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ5_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ6_K>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kIQ4_XS>(const MatmulArgs&, RowRange) noexcept;

}  // namespace headrace::amx
