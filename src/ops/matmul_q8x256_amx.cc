// Products of interleaved weights with int8 activations by AMX tiles: recipe q8x256 (matmul.h), layout kInterleaved16.
//
// Scales go into the weights: a super-block of 16 neurons becomes w = q * scale, exact in 16 bits, split into bytes,
//   w = low + 256 * high, low unsigned, high signed: two planes, each in tiles of 64 k by 16 neurons,
// and isum = sum low * x + 256 * sum high * x, exact integers. Formats whose w fits a byte have one plane.
// Minima multiply sums of x in a tile of bf16. Largest values: a plane's sum 255 * 127 * 256 < 2^23; isum < 2^30.
//
// Order: groups, super-blocks (expanded into the L1 cache), pairs of tiles of rows.
#include <immintrin.h>

#include "ops/interleaved_layout.h"
#include "ops/matmul_interleaved_avx512.h"
#include "ops/matmul_kernels.h"
#include "ops/matmul_tiles_amx.h"

namespace headrace::amx {
namespace {

constexpr int kTilesOfUnit = kUnitK / 64;
constexpr int64_t kMaxPassUnits = 4096;  // rows times super-blocks: 272 KiB of scales and sums on the stack
constexpr int64_t kMaxK = kMaxPassUnits / kTileRows * kUnitK;

/// -q * scale of Q3_K lies in [-128, 124], q * scale of Q2_K in [0, 45].
consteval bool has_high_plane(DType dtype) { return dtype != DType::kQ2_K && dtype != DType::kQ3_K; }
consteval bool is_negated(DType dtype) { return dtype == DType::kQ3_K; }

/// A super-block of a group, ready to multiply.
struct Planes {
  alignas(64) uint8_t low[kTilesOfUnit * kTileBytes];
  alignas(64) uint8_t high[kTilesOfUnit * kTileBytes];
  alignas(64) uint8_t mins[kTileBytes];  ///< row i: of 16-block i, twice in bf16
};

/// Products of two tiles of rows.
struct Sums {
  alignas(64) int32_t low[2][kTileRows][kLanes];
  alignas(64) int32_t high[2][kTileRows][kLanes];
  alignas(64) float mins[2][kTileRows][kLanes];
};

/// One or two tiles of rows times one super-block.
struct Step {
  int tiles = 0;
  const float* a = nullptr;  ///< scales of the activations, [2][kTileRows]
  const std::byte* d = nullptr;
  const Sums* sums = nullptr;
  float* acc = nullptr;  ///< [2][kTileRows][kLanes]
};

/// Bytes `i` and `j` of each lane in the even places of the lane, zeros in the odd ones.
inline __m512i even_bytes(__m512i v, int i, int j) {
  const __m128i pick = _mm_set1_epi32(static_cast<int>(0x80008000u) | i | j << 16);
  return _mm512_shuffle_epi8(
      v, _mm512_broadcast_i32x4(_mm_add_epi8(pick, _mm_setr_epi32(0, 0x00040004, 0x00080008, 0x000c000c))));
}

/// Byte `i` of each lane as a 32-bit number.
inline __m512i byte_of_lane(__m512i v, int i) {
  return _mm512_and_si512(_mm512_srli_epi32(v, static_cast<unsigned>(8 * i)), _mm512_set1_epi32(255));
}

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
          const __m512 min = _mm512_cvtepi32_ps(byte_of_lane(mins, half == 0 ? first : second));
          const __m512i bits = _mm512_castps_si512(min);
          _mm512_store_si512(planes.mins + 64 * (2 * s + half), _mm512_or_si512(bits, _mm512_srli_epi32(bits, 16)));
        }
      }
      __m512i w[kKRows];
      expand_slab<T>(unit + s * kFormat.slab_bytes, w);
#pragma GCC unroll 8
      for (int r = 0; r < kKRows; ++r) {
        const int scale = r < kRowsOfScale ? first : second;
        const __m512i even_scale = even_bytes(scales, scale, scale), odd_scale = _mm512_slli_epi16(even_scale, 8);
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

/// low + 256 * high of a row.
inline __m512 sum_of(const int32_t* low, const int32_t* high) {
  const __m512i shifted = _mm512_slli_epi32(_mm512_load_si512(high), 8);
  return _mm512_cvtepi32_ps(_mm512_add_epi32(shifted, _mm512_load_si512(low)));
}

/// Adds a step's sums to the accumulators: `quarter` (0 to 3) of its rows.
template <DType T>
void finish(const Step& step, int quarter, int height) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  if (step.tiles == 0) return;
  const int t = step.tiles == 2 ? quarter / 2 : 0;
  const int rows = step.tiles == 2 ? kTileRows / 2 : kTileRows / 4;
  const int first = quarter * rows % kTileRows, end = first + rows < height ? first + rows : height;
  const __m512 d = load_f16(step.d);
  [[maybe_unused]] const __m512 dmin = kFormat.has_min ? load_f16(step.d + kGroupF16Bytes) : d;
  const float* a_at = step.a + t * kTileRows + first;
  float* acc_at = step.acc + (t * kTileRows + first) * kLanes;
#pragma GCC unroll 4
  for (int r = first; r < end; ++r, ++a_at, acc_at += kLanes) {
    const __m512 a = _mm512_set1_ps(*a_at);
    __m512 isum;
    if constexpr (has_high_plane(T)) {
      isum = sum_of(step.sums->low[t][r], step.sums->high[t][r]);
    } else {
      const __m512i low = _mm512_load_si512(step.sums->low[t][r]);
      isum = _mm512_cvtepi32_ps(is_negated(T) ? _mm512_sub_epi32(_mm512_setzero_si512(), low) : low);
    }
    __m512 acc = _mm512_fmadd_ps(_mm512_mul_ps(d, a), isum, _mm512_load_ps(acc_at));
    if constexpr (kFormat.has_min) {
      const __m512 msum = _mm512_load_ps(step.sums->mins[t][r]);
      acc = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, a), msum, acc);
    }
    _mm512_store_ps(acc_at, acc);
  }
}

// Tiles 0 to 3: sums, 0 and 1 of the low plane, 2 and 3 of the high one; 4 and 5: activations; 6 and 7: the planes.

/// `min_sums`: of the first tile's first row.
template <int tiles>
void multiply_mins(const uint8_t* min_sums, const Planes& planes, Sums& sums) {
  _tile_zero(0);
  _tile_loadd(4, min_sums, 64);
  _tile_loadd(6, planes.mins, 64);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (tiles == 2) {
    _tile_zero(1);
    _tile_loadd(5, min_sums + kTileBytes, 64);
    _tile_dpbf16ps(1, 5, 6);
    _tile_stored(1, sums.mins[1], 64);
  }
  _tile_stored(0, sums.mins[0], 64);
}

/// `x0`, `x1`: the first row of each tile. Multiplies; between the products, which keep the tile unit busy, finishes
/// the step before.
template <DType T, int tiles>
void multiply(const std::byte* x0, const std::byte* x1, int64_t row_bytes, const Planes& planes, Sums& sums,
              const Step& before, int height) {
  _tile_zero(0);
  if constexpr (tiles == 2) _tile_zero(1);
  if constexpr (has_high_plane(T)) {
    _tile_zero(2);
    if constexpr (tiles == 2) _tile_zero(3);
  }
  for (int i = 0; i < kTilesOfUnit; ++i) {
    _tile_loadd(4, x0 + 64 * i, row_bytes);
    if constexpr (tiles == 2) _tile_loadd(5, x1 + 64 * i, row_bytes);
    _tile_loadd(6, planes.low + kTileBytes * i, 64);
    if constexpr (is_negated(T)) {
      _tile_dpbssd(0, 4, 6);
      if constexpr (tiles == 2) _tile_dpbssd(1, 5, 6);
    } else {
      _tile_dpbsud(0, 4, 6);
      if constexpr (tiles == 2) _tile_dpbsud(1, 5, 6);
    }
    if constexpr (has_high_plane(T)) {
      _tile_loadd(7, planes.high + kTileBytes * i, 64);
      _tile_dpbssd(2, 4, 7);
      if constexpr (tiles == 2) _tile_dpbssd(3, 5, 7);
    }
    finish<T>(before, i, height);
  }
  _tile_stored(0, sums.low[0], 64);
  if constexpr (tiles == 2) _tile_stored(1, sums.low[1], 64);
  if constexpr (has_high_plane(T)) {
    _tile_stored(2, sums.high[0], 64);
    if constexpr (tiles == 2) _tile_stored(3, sums.high[1], 64);
  }
}

struct Scratch {
  Planes planes;
  Sums sums[2];  ///< in turn: of this step and of the one before
  alignas(64) float acc[kMaxPassRows][kLanes];
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

  Step before;
  int turn = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    const std::byte* unit = weights + block * kFormat.unit_bytes;
    expand_unit<T>(unit, scratch.planes);
    for (int64_t t = 0; t < pass.tiles; t += 2, turn ^= 1) {
      const int64_t at = (block * pass.tiles + t) * kTileRows;
      Sums& sums = scratch.sums[turn];
      Step step;
      step.tiles = pass.tiles - t < 2 ? 1 : 2;
      step.a = scratch.a + at;
      step.d = unit + kUnitK / kSlabK * kFormat.slab_bytes + kFormat.scale_bytes;
      step.sums = &sums;
      step.acc = scratch.acc[t * kTileRows];
      const std::byte* x0 = args.x.data + pass.row_of_tile(t) * row_bytes + kUnitK * block;
      if (step.tiles == 2) {
        const std::byte* x1 = args.x.data + pass.row_of_tile(t + 1) * row_bytes + kUnitK * block;
        if constexpr (kFormat.has_min) multiply_mins<2>(scratch.min_sums[at], scratch.planes, sums);
        multiply<T, 2>(x0, x1, row_bytes, scratch.planes, sums, before, pass.height);
      } else {
        if constexpr (kFormat.has_min) multiply_mins<1>(scratch.min_sums[at], scratch.planes, sums);
        multiply<T, 1>(x0, x0, row_bytes, scratch.planes, sums, before, pass.height);
      }
      before = step;
    }
  }
  for (int quarter = 0; quarter < 4; ++quarter) finish<T>(before, quarter, pass.height);

  store_rows<T>(args, group, pass, scratch.acc);
}

}  // namespace

template <DType T>
void matmul_interleaved(const MatmulArgs& args, RowRange groups) noexcept {
  if (args.x.rows < kMinRows || args.x.k > kMaxK) {
    avx512::matmul_interleaved<T>(args, groups);
    return;
  }
  const int height = tile_height(args);
  configure_tiles(height, 64);
  Scratch scratch;
  Pass pass;
  pass.height = height;
  while (next_pass(args, pass)) {
    gather<T>(args, pass, scratch);
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
