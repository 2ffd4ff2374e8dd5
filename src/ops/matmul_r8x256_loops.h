#pragma once

#include "ops/matmul_r8x256.h"
#include "ops/requant.h"

/// The loops of the AVX2 and AVX-512 products of recipe r8x256: passes over rows whose activations stay in the L2
/// cache, groups of neurons, units (expanded into the L1 cache, for all rows of the pass), tiles of rows.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

constexpr int kLanes = 16;
constexpr int64_t kPassBytes = 1 << 20;  // activations of one pass: half of a 2 MiB L2
constexpr int64_t kMaxPassRows = 512;    // their accumulators, 32 KiB, lie on the stack

/// One unit of a group, and where the activations of its first row begin.
struct UnitPlace {
  const std::byte* x;  ///< record of the pass's first row
  int64_t row_bytes;
  int64_t q_at, scale_at, sum_at;  ///< inside a record
  int slabs;
};

/// Tiles of `rows` rows, then the rest in tiles of half as many.
template <class Kernel, int rows>
void add_row_tiles(const Kernel& kernel, const UnitPlace& place, int64_t first, int64_t last, float (*acc)[kLanes]) {
  for (; first + rows <= last; first += rows) {
    kernel.template add<rows>(place, place.x + first * place.row_bytes, acc + first);
  }
  if constexpr (rows > 1) add_row_tiles<Kernel, rows / 2>(kernel, place, first, last, acc);
}

/// Kernel holds one expanded unit of a group:
///   kMaxRows                               rows of the largest tile
///   expand(unit, slabs, r)                 takes a unit and its scales
///   add<rows>(place, first record, acc)    adds the unit's products with a tile of rows
///   store(args, group, row, weights, outliers, acc)  takes a row's outliers and writes it to y
template <class Kernel>
void run_requant(const MatmulArgs& args, RowRange groups) {
  const InterleavedFormat& format = Kernel::kFormat;
  const int64_t k = args.x.k, row_bytes = act_row_bytes(args.x.form, k);
  const int64_t outliers_at = act_outlier_offset(args.x.form, k);
  const int64_t group_bytes = requant_group_bytes(format, k), scales_in_group = interleaved_group_bytes(format, k);
  int64_t most = kPassBytes / outliers_at / Kernel::kMaxRows * Kernel::kMaxRows;
  most = most < Kernel::kMaxRows ? Kernel::kMaxRows : most > kMaxPassRows ? kMaxPassRows : most;
  Kernel kernel;
  alignas(64) float acc[kMaxPassRows][kLanes];
  for (int64_t first = 0; first < args.x.rows; first += most) {
    const int64_t rows = args.x.rows - first < most ? args.x.rows - first : most;
    UnitPlace place{.x = args.x.data + first * row_bytes,
                    .row_bytes = row_bytes,
                    .q_at = 0,
                    .scale_at = 0,
                    .sum_at = 0,
                    .slabs = 0};
    for (int64_t g = groups.begin; g < groups.end; ++g) {
      const std::byte* weights = args.w.data + g * group_bytes;
      const std::byte *unit = weights, *r = weights + scales_in_group;
      __builtin_memset(acc, 0, static_cast<size_t>(rows) * sizeof(*acc));
      for (int64_t done = 0; done < k; done += kUnitK, unit += format.unit_bytes, r += kRequantScaleBytes) {
        place.q_at = done;
        place.scale_at = act_scale_offset(args.x.form, k) + done / kUnitK * 4;
        place.sum_at = act_sum_offset(args.x.form, k) + done / 16 * 2;
        place.slabs = static_cast<int>((k - done < kUnitK ? k - done : kUnitK) / kSlabK);
        kernel.expand(unit, place.slabs, r);
        add_row_tiles<Kernel, Kernel::kMaxRows>(kernel, place, 0, rows, acc);
      }
      for (int64_t row = 0; row < rows; ++row) {
        Kernel::store(args, g, first + row, weights, place.x + row * row_bytes + outliers_at, acc[row]);
      }
    }
  }
}

}  // namespace
}  // namespace headrace
