#pragma once

#include "ops/matmul_kernels.h"

/// The loops that all vector products share: passes over rows whose activations stay in the L2 cache, neuron groups
/// within a pass, tiles of rows within a group (so that one read of a group's weights serves all rows of the pass).
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

constexpr int64_t kPassBytes = 1 << 20;  // activations of one pass: half of a 2 MiB L2

/// Tiles of `rows` rows, then the rest in tiles of half as many. Kernel::tile<rows>(args, group, first row).
template <class Kernel, int rows>
void run_row_tiles(const MatmulArgs& args, int64_t group, int64_t first, int64_t last) {
  for (; first + rows <= last; first += rows) Kernel::template tile<rows>(args, group, first);
  if constexpr (rows > 1) run_row_tiles<Kernel, rows / 2>(args, group, first, last);
}

template <class Kernel>
void run_tiles(const MatmulArgs& args, int64_t row_bytes, RowRange groups) {
  constexpr int kMaxRows = Kernel::kMaxRows;
  int64_t pass = kPassBytes / (row_bytes > 0 ? row_bytes : 1) / kMaxRows * kMaxRows;
  if (pass < kMaxRows) pass = kMaxRows;
  for (int64_t first = 0; first < args.x.rows; first += pass) {
    const int64_t last = first + pass < args.x.rows ? first + pass : args.x.rows;
    for (int64_t g = groups.begin; g < groups.end; ++g) run_row_tiles<Kernel, kMaxRows>(args, g, first, last);
  }
}

}  // namespace
}  // namespace headrace
