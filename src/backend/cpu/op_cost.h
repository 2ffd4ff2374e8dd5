#pragma once

#include <algorithm>

#include "backend/op_work.h"

namespace headrace {

// What one item of an operator takes on one core, roughly, in nanoseconds: measured orders of magnitude for AVX2-class
// kernels near 3 GHz. They decide only where it pays to use more than one thread, never a result.
inline constexpr double kStreamNs = 0.25;           // per f32 read and written, in cache
inline constexpr double kExpNs = 1.0;               // per value through exp
inline constexpr double kSinCosNs = 40;             // per angle, scalar double
inline constexpr double kMultiplyAddNs = 1.0 / 32;  // two 8-lane units, or the memory's speed with 4-bit weights

inline double item_ns(const EmbedArgs& a) noexcept { return kStreamNs * 2 * static_cast<double>(a.table.k); }
inline double item_ns(const RmsNormArgs& a) noexcept { return kStreamNs * 2 * static_cast<double>(a.dim); }
inline double item_ns(const QuantizeArgs& a) noexcept { return kStreamNs * 2 * static_cast<double>(a.y.k); }
inline double item_ns(const MatmulArgs& a) noexcept {
  return kMultiplyAddNs * static_cast<double>(kNeuronGroup * a.w.k) * static_cast<double>(a.x.rows);
}
inline double item_ns(const AddArgs& a) noexcept { return kStreamNs * static_cast<double>(a.dim); }
inline double item_ns(const SiluMulArgs& a) noexcept { return kExpNs * static_cast<double>(a.dim); }
inline double item_ns(const GatherRowsArgs& a) noexcept { return kStreamNs * static_cast<double>(a.dim); }
inline double item_ns(const RopeTableArgs& a) noexcept { return kSinCosNs * static_cast<double>(a.half); }
inline double item_ns(const RopeArgs& a) noexcept { return kStreamNs * static_cast<double>(a.heads * a.head_dim); }
inline double item_ns(const KvWriteArgs& a) noexcept {
  // Keys are scattered, one value to a line.
  return kStreamNs * static_cast<double>(a.layout.kv_heads) * (4.0 * a.layout.head_dim + a.layout.v_head_dim);
}
/// The mean over the rows: rows of one step may see contexts of very different length.
inline double item_ns(const AttentionArgs& a) noexcept {
  double positions = 0;
  for (int64_t r = 0; r < a.rows; ++r) {
    const int32_t seen = a.positions[r] + 1;
    positions += a.window > 0 ? std::min(seen, a.window) : seen;
  }
  const double heads_per_item = static_cast<double>(a.heads) / std::max(a.layout.kv_heads, 1);
  const double per_position = kMultiplyAddNs * (a.layout.head_dim + a.layout.v_head_dim) + kExpNs;
  return positions / static_cast<double>(std::max<int64_t>(a.rows, 1)) * heads_per_item * per_position;
}

/// A range must be worth the barrier of the pool, 0.8 us with two threads: less stays with the caller.
inline constexpr double kLeastRangeNs = 2000;

/// Items of the least range that is worth a thread of its own, where an item takes `ns`.
[[nodiscard]] inline int64_t items_worth_a_range(double ns) noexcept {
  return static_cast<int64_t>(kLeastRangeNs / std::max(ns, 1.0)) + 1;
}
template <class Args>
[[nodiscard]] int64_t range_grain(const Args& args) noexcept {
  return items_worth_a_range(item_ns(args));
}

}  // namespace headrace
