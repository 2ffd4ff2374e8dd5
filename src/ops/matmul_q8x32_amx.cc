// Products of interleaved weights with int8 activations by AMX tiles: recipe q8x32 (matmul.h), layout kInterleaved16.
//
// Each 32-block has a scale of its own, so a tile product covers 32 k only, half of what it could, and its sums leave
// the tile after each: still faster than vpdpbusd, whose operands all pass through the vector registers. Codes become q
// as signed bytes, which takes the sums of x out of formats without minima. Rows and passes as in matmul_tiles_amx.h.
#include <immintrin.h>

#include "ops/interleaved_layout.h"
#include "ops/matmul_interleaved_avx512.h"
#include "ops/matmul_kernels.h"
#include "ops/matmul_tiles_amx.h"

namespace headrace::amx {
namespace {

constexpr int kUnitBlocks = kUnitK / kSlabK;
constexpr int kSlabBytes = kKRows * 64;
constexpr int64_t kMaxPassBlocks = 32768;  // 256 KiB on the stack
constexpr int64_t kMaxK = kMaxPassBlocks / kTileRows * kSlabK;

struct Scratch {
  alignas(64) uint8_t q[kUnitBlocks][kSlabBytes];  ///< a unit of a group, ready to multiply
  alignas(64) int32_t sums[2][kTileRows][kLanes];  ///< in turn: of this block and of the one before
  alignas(64) float acc[kMaxPassRows][kLanes];
  // Of each block, in the order of the tiles' rows:
  alignas(64) float a[kMaxPassBlocks];   ///< scales of the activations
  alignas(64) float as[kMaxPassBlocks];  ///< times the sum of x
};

template <DType T>
void expand_unit(const std::byte* unit, int blocks, Scratch& scratch) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(offset_of(kFormat)));
  for (int b = 0; b < blocks; ++b) {
    fetch(unit + b * kFormat.unit_step_bytes, kFormat.unit_step_bytes);
    __m512i w[kKRows];
    expand_slab<T>(unit + b * kFormat.slab_bytes, w);
#pragma GCC unroll 8
    for (int r = 0; r < kKRows; ++r) {
      const __m512i q = offset_of(kFormat) != 0 ? _mm512_sub_epi8(w[r], offset) : w[r];
      _mm512_store_si512(scratch.q[b] + 64 * r, q);
    }
  }
  asm volatile("" ::: "memory");  // loads of tiles do not tell the compiler what they read
}

/// A tile of rows times a unit. d: of the unit, m after it; a, as: of the tile in the unit's first block, `step` apart.
template <DType T>
void multiply_unit(const std::byte* x, int64_t row_bytes, const std::byte* d_at, int blocks, const float* a,
                   const float* as, int64_t step, Scratch& scratch, float* acc_at) {
  constexpr bool kHasMin = interleaved_format(T).has_min;
  __m512 acc[kTileRows];
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) acc[r] = _mm512_load_ps(acc_at + r * kLanes);
  const auto finish = [&](int b) __attribute__((always_inline)) {
    const int32_t* sums = scratch.sums[b % 2][0];
    const __m512 d = load_f16(d_at + b * kGroupF16Bytes);
    const __m512 m = kHasMin ? load_f16(d_at + (blocks + b) * kGroupF16Bytes) : d;
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      const __m512 isum = _mm512_cvtepi32_ps(_mm512_load_si512(sums + r * kLanes));
      acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(a[b * step + r])), isum, acc[r]);
      if constexpr (kHasMin) acc[r] = _mm512_fmadd_ps(m, _mm512_set1_ps(as[b * step + r]), acc[r]);
    }
  };
  for (int b = 0; b < blocks; ++b) {
    _tile_zero(0);
    _tile_loadd(4, x + kSlabK * b, row_bytes);
    _tile_loadd(6, scratch.q[b], 64);
    _tile_dpbssd(0, 4, 6);
    if (b > 0) finish(b - 1);
    _tile_stored(0, scratch.sums[b % 2], 64);
  }
  finish(blocks - 1);
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

template <DType T>
void multiply_group(const MatmulArgs& args, int64_t group, const Pass& pass, Scratch& scratch) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const int64_t k = args.w.k;
  const int64_t row_bytes = act_row_bytes(args.x.form, k), step = pass.tiles * kTileRows;
  const std::byte* weights = args.w.data + group * (k / kSlabK) * kFormat.unit_step_bytes;
  for (int64_t r = 0; r < step; ++r) _mm512_store_ps(scratch.acc[r], _mm512_setzero_ps());
  for (int64_t done = 0; done < k; done += kUnitK) {
    const int64_t rest = (k - done) / kSlabK;
    const int blocks = static_cast<int>(rest < kUnitBlocks ? rest : kUnitBlocks);
    const std::byte* unit = weights + done / kSlabK * kFormat.unit_step_bytes;
    expand_unit<T>(unit, blocks, scratch);
    for (int64_t t = 0; t < pass.tiles; ++t) {
      const std::byte* x = args.x.data + pass.row_of_tile(t) * row_bytes + done;
      const int64_t at = done / kSlabK * step + t * kTileRows;
      multiply_unit<T>(x, row_bytes, unit + blocks * kFormat.slab_bytes, blocks, scratch.a + at, scratch.as + at, step,
                       scratch, scratch.acc[t * kTileRows]);
    }
  }
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
  configure_tiles(height, kSlabK);
  Scratch scratch;
  __builtin_memset(scratch.sums, 0, sizeof(scratch.sums));  // rows beyond `height` are computed with
  Pass pass;
  pass.height = height;
  while (next_pass(args, pass)) {
    gather(args, pass, scratch);
    for (int64_t g = groups.begin; g < groups.end; ++g) multiply_group<T>(args, g, pass, scratch);
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
