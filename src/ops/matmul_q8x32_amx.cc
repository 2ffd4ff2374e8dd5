// Products of interleaved weights with int8 activations by AMX tiles: recipe q8x32 (matmul.h), layout kInterleaved16.
//
// Each 32-block has a scale of its own, so a tile product covers 32 k only, half of what it could, and its sums leave
// the tile after each: still faster than vpdpbusd, whose operands all pass through the vector registers. Codes become q
// as signed bytes, which takes the sums of x out of formats without minima. Rows and passes as in matmul_tiles_amx.h.
//
// Four tiles of sums in turn: those of a block are stored two blocks later and added up after one more. Stored at once,
// they would hold up the loads behind them until the tile unit is done.
#include <immintrin.h>

#include "ops/interleaved_layout.h"
#include "ops/matmul_interleaved_avx512.h"
#include "ops/matmul_kernels.h"
#include "ops/matmul_tiles_amx.h"
#include "ops/tile_registers_amx.h"

namespace headrace::amx {
namespace {

constexpr int kUnitBlocks = kUnitK / kSlabK;
// Units expanded together: 15 KiB of the L1 cache. Few k after the last whole panel would cost as much as many.
constexpr int kPanelUnits = 3;
constexpr int kSlabBytes = kKRows * 64;
constexpr int kSumTiles = 4;
constexpr int64_t kMaxPassBlocks = 32768;  // 256 KiB on the stack
constexpr int64_t kMaxK = kMaxPassBlocks / kTileRows * kSlabK;

struct Scratch {
  // A panel of a group, ready to multiply:
  alignas(64) uint8_t q[kPanelUnits * kUnitBlocks][kSlabBytes];
  alignas(64) float d[kPanelUnits * kUnitBlocks][kLanes];
  alignas(64) float m[kPanelUnits * kUnitBlocks][kLanes];
  alignas(64) int32_t sums[kSumTiles][kTileRows][kLanes];  ///< of a block and those before it, in turn
  alignas(64) float acc[kBandGroups][kMaxPassRows][kLanes];
  InPlaceOutliers outliers;
  // Of each block, in the order of the tiles' rows:
  alignas(64) float a[kMaxPassBlocks];   ///< scales of the activations
  alignas(64) float as[kMaxPassBlocks];  ///< times the sum of x
};

/// Blocks [first, first + blocks) of the panel, from their unit.
template <DType T>
void expand_unit(const std::byte* unit, int first, int blocks, Scratch& scratch) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(offset_of(kFormat)));
  const std::byte* d_at = unit + blocks * kFormat.slab_bytes;
  for (int b = 0; b < blocks; ++b) {
    uint8_t* q = scratch.q[first + b];
    __m512i w[kKRows];
    expand_slab<T>(unit + b * kFormat.slab_bytes, w);
#pragma GCC unroll 8
    for (int r = 0; r < kKRows; ++r) {
      _mm512_store_si512(q + 64 * r, offset_of(kFormat) != 0 ? _mm512_sub_epi8(w[r], offset) : w[r]);
    }
    _mm512_store_ps(scratch.d[first + b], load_f16(d_at + b * kGroupF16Bytes));
    if constexpr (kFormat.has_min)
      _mm512_store_ps(scratch.m[first + b], load_f16(d_at + (blocks + b) * kGroupF16Bytes));
  }
}

/// Below, vpdpbusd is faster: a block costs the tiles the same whatever its bytes.
consteval int64_t least_rows(DType dtype) { return interleaved_format(dtype).code_bits == 8 ? 5 : 10; }

/// A tile of rows times the blocks of a panel.
struct Panel {
  const std::byte* x;  ///< of the tile's first row and the panel's first block
  int64_t row_bytes;
  int blocks;
  bool is_first;        ///< of its rows and group
  const float *a, *as;  ///< of the tile in the first block, `step` apart
  int64_t step;
  const std::byte* ahead;  ///< of the panel after this one: the lines of the first block that this tile fetches
  int ahead_lines;
};

/// Adds the sums of block `b` to acc.
template <DType T>
inline __attribute__((always_inline)) void finish(const Panel& p, const Scratch& scratch, int b, __m512* acc) {
  constexpr bool kHasMin = interleaved_format(T).has_min;
  const __m512 d = _mm512_load_ps(scratch.d[b]), m = kHasMin ? _mm512_load_ps(scratch.m[b]) : d;
  const int32_t* sums = scratch.sums[b % kSumTiles][0];
  const float *a = p.a + b * p.step, *as = p.as + b * p.step;
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
    const __m512 isum = _mm512_cvtepi32_ps(_mm512_load_si512(sums + r * kLanes));
    acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(a[r])), isum, acc[r]);
    if constexpr (kHasMin) acc[r] = _mm512_fmadd_ps(m, _mm512_set1_ps(as[r]), acc[r]);
  }
}

/// What comes with block `b`, b % 4 == tile: its product, the sums of block b - 3, the store of block b - 2.
template <DType T, int tile>
inline __attribute__((always_inline)) void multiply_block(const Panel& p, Scratch& scratch, int b, __m512* acc) {
  if (b < p.blocks) {
    tile_zero<tile>();
    tile_load<4>(p.x + kSlabK * b, p.row_bytes);
    tile_load<6>(scratch.q[b], 64);
    tile_dot_ss<tile, 4, 6>();
    const std::byte* ahead = p.ahead + b * interleaved_format(T).unit_step_bytes;
    for (int i = 0; i < p.ahead_lines; ++i) _mm_prefetch(reinterpret_cast<const char*>(ahead + 64 * i), _MM_HINT_T0);
  }
  if (b >= 3) finish<T>(p, scratch, b - 3, acc);
  if (b >= 2 && b - 2 < p.blocks) tile_store<(tile + 2) % 4>(scratch.sums[(tile + 2) % kSumTiles], 64);
}

template <DType T>
void multiply_panel(const Panel& p, Scratch& scratch, float* acc_at) {
  __m512 acc[kTileRows];
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) acc[r] = p.is_first ? _mm512_setzero_ps() : _mm512_load_ps(acc_at + r * kLanes);
  for (int b = 0; b < p.blocks + 3; b += 4) {
    multiply_block<T, 0>(p, scratch, b, acc);
    if (b + 1 < p.blocks + 3) multiply_block<T, 1>(p, scratch, b + 1, acc);
    if (b + 2 < p.blocks + 3) multiply_block<T, 2>(p, scratch, b + 2, acc);
    if (b + 3 < p.blocks + 3) multiply_block<T, 3>(p, scratch, b + 3, acc);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) _mm512_store_ps(acc_at + r * kLanes, acc[r]);
}

/// Scales, which stand apart in the records, for each block in the order of the tiles' rows.
void gather(const MatmulArgs& args, const Pass& pass, Scratch& scratch) {
  const int64_t k = args.x.k, blocks = k / kSlabK, row_bytes = act_row_bytes(args.x.form, k);
  const int64_t scale_at = act_scale_offset(args.x.form, k), sum_at = act_sum_offset(args.x.form, k);
  for (int64_t t = 0; t < pass.tiles; ++t) {
    for (int r = 0; r < pass.height; ++r) {
      const std::byte* record = args.x.data + (pass.row_of_tile(t) + r) * row_bytes;
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t at = (b * pass.tiles + t) * kTileRows + r;
        int16_t sum;
        __builtin_memcpy(&sum, record + sum_at + 2 * b, 2);
        scratch.a[at] = load_f32(record + scale_at + 4 * b);
        scratch.as[at] = scratch.a[at] * static_cast<float>(sum);
      }
    }
  }
}

/// acc: [kMaxPassRows].
template <DType T>
void multiply_group(const MatmulArgs& args, int64_t group, const Pass& pass, Scratch& scratch, float (*acc)[kLanes]) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const int64_t k = args.w.k;
  const int64_t row_bytes = act_row_bytes(args.x.form, k), step = pass.tiles * kTileRows;
  const std::byte* weights = args.w.data + group * (k / kSlabK) * kFormat.unit_step_bytes;
  const int64_t panel_k = kPanelUnits * kUnitK;
  for (int64_t done = 0; done < k; done += panel_k) {
    const int64_t rest = (k - done) / kSlabK, first_block = done / kSlabK;
    const int blocks = static_cast<int>(rest < panel_k / kSlabK ? rest : panel_k / kSlabK);
    const std::byte* unit = weights + first_block * kFormat.unit_step_bytes;
    for (int b = 0; b < blocks; b += kUnitBlocks) {
      expand_unit<T>(unit + b * kFormat.unit_step_bytes, b, blocks - b < kUnitBlocks ? blocks - b : kUnitBlocks,
                     scratch);
    }
    asm volatile("" ::: "memory");  // loads of tiles do not tell the compiler what they read
    for (int64_t t = 0; t < pass.tiles; ++t) {
      const int64_t at = first_block * step + t * kTileRows;
      // Fetched in one go, the lines would hold up what comes after them.
      constexpr int64_t kLines = kFormat.unit_step_bytes / 64;
      const int64_t first_line = kLines * t / pass.tiles;
      const Panel panel{.x = args.x.data + pass.row_of_tile(t) * row_bytes + done,
                        .row_bytes = row_bytes,
                        .blocks = blocks,
                        .is_first = done == 0,
                        .a = scratch.a + at,
                        .as = scratch.as + at,
                        .step = step,
                        .ahead = unit + blocks * kFormat.unit_step_bytes + 64 * first_line,
                        .ahead_lines = static_cast<int>(kLines * (t + 1) / pass.tiles - first_line)};
      multiply_panel<T>(panel, scratch, acc[t * kTileRows]);
    }
  }
}

}  // namespace

template <DType T>
void matmul_interleaved(const MatmulArgs& args, RowRange groups) noexcept {
  if (args.x.rows < least_rows(T) || args.x.k > kMaxK) {
    avx512::matmul_interleaved<T>(args, groups);
    return;
  }
  const int height = tile_height(args);
  configure_tiles(height, kSlabK);
  Scratch scratch;
  __builtin_memset(scratch.sums, 0, sizeof(scratch.sums));  // rows beyond `height` are computed with
  Pass pass;
  pass.height = height;
  while (next_pass(args, pass)) {
    gather(args, pass, scratch);
    scratch.outliers.collect(args.x, pass.first, pass.last, [&](int64_t row) { return pass.position_of(row); });
    for_bands(groups, [&](int64_t first, int64_t last) {
      for (int64_t g = first; g < last; ++g) multiply_group<T>(args, g, pass, scratch, scratch.acc[g - first]);
      store_rows<T>(args, first, static_cast<int>(last - first), pass, scratch.acc, scratch.outliers);
    });
  }
  _tile_release();
}
template void matmul_interleaved<DType::kQ4_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ4_1>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ5_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ5_1>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kQ8_0>(const MatmulArgs&, RowRange) noexcept;
template void matmul_interleaved<DType::kIQ4_NL>(const MatmulArgs&, RowRange) noexcept;

}  // namespace headrace::amx
