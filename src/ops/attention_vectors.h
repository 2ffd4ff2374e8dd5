#pragma once

#include <immintrin.h>

#include "ops/attention.h"

/// What all kernels of attention (attention.h) do around the products, whatever the width of vectors and the cache
/// type.
///
/// V is an instruction set: F, kLanes; zero, set1, load, store (of the first n lanes too), add, sub, mul, div, fma,
/// max, exp, most (of the lanes), lowest_lane, sum16 (of 16 chains). E is a cache type: kHasScales; with them
/// key_scales(layout, chunk, t).
///
/// A pair is a row and one of its query heads. All pairs of a KV head whose rows follow each other in a sequence go
/// through the context together, so that its keys and values are read once.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

constexpr int64_t kMaxPairs = 64;
constexpr int64_t kChunkBlocks = kAttentionChunk / kBlockTokens;
constexpr int64_t kBlocksAhead = 4;                     // blocks that are fetched before they are read
constexpr int64_t kScoreStride = kAttentionChunk + 16;  // lest all rows of scores begin in the same set of the cache

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t largest(int64_t a, int64_t b) { return a > b ? a : b; }

/// Rows [row, row + rows) of one sequence, at positions pos, pos + 1, ..., and heads [head, head + heads) of one KV
/// head. Pair i is row i / heads, head i % heads.
struct AttentionTile {
  int64_t row = 0, rows = 0;
  int64_t kv_head = 0;
  int64_t head = 0, heads = 0;
  int64_t pos = 0;
};

/// Calls fn(tile) for tiles that cover the items: at most `max_pairs` pairs (kMaxPairs or less) of `most_rows` rows.
template <class Fn>
void for_each_tile(const AttentionArgs& a, RowRange items, int64_t max_pairs, int64_t most_rows, const Fn& fn) {
  const int64_t group = a.heads / a.layout.kv_heads;
  for (int64_t item = items.begin; item < items.end;) {
    AttentionTile tile;
    tile.kv_head = item / a.rows;
    tile.row = a.rows - 1 - item % a.rows;
    const int64_t least_row = largest(0, tile.row + 1 - (items.end - item));
    const int64_t max_rows = least(most_rows, largest(1, max_pairs / group));
    tile.rows = 1;
    while (tile.rows < max_rows && tile.row > least_row && a.table_begin[tile.row - 1] == a.table_begin[tile.row] &&
           a.positions[tile.row - 1] == a.positions[tile.row] - 1) {
      --tile.row;
      ++tile.rows;
    }
    tile.pos = a.positions[tile.row];
    for (int64_t h = 0; h < group; h += max_pairs) {
      tile.head = tile.kv_head * group + h;
      tile.heads = least(max_pairs, group - h);
      fn(tile);
    }
    item += tile.rows;
  }
}

/// A chunk of the context for one KV head: of its blocks, those that some row of the tile sees.
struct Chunk {
  int64_t begin = 0;  ///< position of the first block's first token
  int64_t num_blocks = 0;
  int64_t index = 0;                    ///< of the chunk in the context
  const std::byte* keys[kChunkBlocks];  ///< of each block
  const std::byte* values[kChunkBlocks];
  /// The keys that are read after the chunk; only fetched ahead.
  const std::byte* following[kBlocksAhead];
};

/// Tokens [begin, end) of a chunk, counted from Chunk::begin.
struct Visible {
  int64_t begin = 0, end = 0;
};

/// A tile's way through the context, chunk by chunk.
class Walk {
 public:
  Walk(const AttentionArgs& a, const AttentionTile& tile)
      : a_(a),
        tile_(tile),
        table_(a.block_table + a.table_begin[tile.row]),
        slab_(a.slab + tile.kv_head * kv_head_bytes(a.layout)),
        block_bytes_(kv_block_bytes(a.layout)),
        next_(first_of(0)),
        last_(tile.pos + tile.rows - 1) {}

  /// Goes on to the next chunk; false where there is none.
  bool next(Chunk& chunk) {
    if (next_ > last_) return false;
    chunk.index = next_ / kAttentionChunk;
    const int64_t end = least((chunk.index + 1) * kAttentionChunk, last_ + 1);
    const int64_t first_block = next_ / kBlockTokens;
    chunk.begin = first_block * kBlockTokens;
    chunk.num_blocks = (end - 1) / kBlockTokens - first_block + 1;
    const int64_t value_offset = kv_value_offset(a_.layout);
    for (int64_t b = 0; b < chunk.num_blocks; ++b) {
      chunk.keys[b] = slab_ + table_[first_block + b] * block_bytes_;
      chunk.values[b] = chunk.keys[b] + value_offset;
    }
    for (int64_t b = 0; b < kBlocksAhead; ++b) {
      const int64_t pos = end + b * kBlockTokens;
      chunk.following[b] = pos <= last_ ? slab_ + table_[pos / kBlockTokens] * block_bytes_ : chunk.values[0];
    }
    next_ = end;
    return true;
  }

  /// The tile's rows [begin, end) that see some of the chunk.
  [[nodiscard]] Visible rows(const Chunk& chunk) const {
    Visible rows{0, tile_.rows};
    while (rows.begin < rows.end && visible(chunk, rows.begin).begin >= visible(chunk, rows.begin).end) ++rows.begin;
    while (rows.begin < rows.end && visible(chunk, rows.end - 1).begin >= visible(chunk, rows.end - 1).end) --rows.end;
    return rows;
  }
  [[nodiscard]] Visible visible(const Chunk& chunk, int64_t row) const {
    const int64_t end = least(tile_.pos + row + 1, (chunk.index + 1) * kAttentionChunk);
    return {largest(first_of(row), chunk.index * kAttentionChunk) - chunk.begin, end - chunk.begin};
  }
  /// What all of rows [rows.begin, rows.end) see, in whole blocks where there is more than one row: groups of a recipe
  /// are blocks. Empty (begin >= end) where there is nothing.
  [[nodiscard]] Visible common(const Chunk& chunk, Visible rows) const {
    Visible common{visible(chunk, rows.end - 1).begin, visible(chunk, rows.begin).end};
    if (rows.end - rows.begin > 1) {
      common.begin = (common.begin + kBlockTokens - 1) / kBlockTokens * kBlockTokens;
      common.end = common.end / kBlockTokens * kBlockTokens;
    }
    return common;
  }
  /// Whether a row sees nothing before this chunk.
  [[nodiscard]] bool is_first(const Chunk& chunk, int64_t row) const {
    return first_of(row) / kAttentionChunk == chunk.index;
  }

 private:
  [[nodiscard]] int64_t first_of(int64_t row) const {
    const int64_t pos = tile_.pos + row;
    return a_.window > 0 && pos >= a_.window ? pos - a_.window + 1 : 0;
  }

  const AttentionArgs& a_;
  const AttentionTile& tile_;
  const int32_t* table_;
  const std::byte* slab_;
  int64_t block_bytes_;
  int64_t next_;
  int64_t last_;
};

/// Maximum and sum over the chunks joined so far, or of one chunk.
struct Softmax {
  float max = 0, sum = 0;
};
/// How a chunk's sums join those before it.
struct Join {
  bool is_first = true;
  float old_factor = 0, factor = 1;
};

template <class V>
Join join(Softmax& total, Softmax chunk, bool is_first) {
  using F = typename V::F;
  if (is_first) {
    total = chunk;
    return {};
  }
  const float max = total.max > chunk.max ? total.max : chunk.max;
  const F old_factor = V::exp(V::set1(total.max - max)), factor = V::exp(V::set1(chunk.max - max));
  total.sum = V::lowest_lane(V::fma(V::set1(total.sum), old_factor, V::mul(V::set1(chunk.sum), factor)));
  total.max = max;
  return {false, V::lowest_lane(old_factor), V::lowest_lane(factor)};
}

/// Scores outside [begin, end) become -infinity.
inline void hide(float* scores, int64_t begin, int64_t end) {
  for (int64_t t = 0; t < begin; ++t) scores[t] = -__builtin_inff();
  for (int64_t t = end; t < kBlockTokens; ++t) scores[t] = -__builtin_inff();
}

/// Maximum and sum of one pair's scores, from its dot products with the keys, which are overwritten; put(t, p) takes
/// the exponentials of each vector, those not visible 0 (which leaves the chains of the sum as they are). Goes through
/// the blocks that are at least partly visible.
template <class V, class E, class Put>
Softmax exponentials(const AttentionArgs& a, const Chunk& chunk, Visible visible, float* scores, const Put& put) {
  using F = typename V::F;
  constexpr int64_t kVecs = kBlockTokens / V::kLanes;
  const int64_t begin = visible.begin / kBlockTokens * kBlockTokens;
  const int64_t end = (visible.end + kBlockTokens - 1) / kBlockTokens * kBlockTokens;
  const F scale = V::set1(a.scale);
  F most[kVecs], chains[kVecs];
  for (int64_t v = 0; v < kVecs; ++v) {
    most[v] = V::set1(-__builtin_inff());
    chains[v] = V::zero();
  }
  for (int64_t t = begin; t < end; t += kBlockTokens) {
    for (int64_t v = 0; v < kVecs; ++v) {
      float* at = scores + t + v * V::kLanes;
      F dot = V::load(at);
      if constexpr (E::kHasScales) dot = V::mul(dot, E::key_scales(a.layout, chunk, t + v * V::kLanes));
      V::store(at, V::mul(scale, dot));
    }
    if (t < visible.begin || t + kBlockTokens > visible.end) hide(scores + t, visible.begin - t, visible.end - t);
    for (int64_t v = 0; v < kVecs; ++v) most[v] = V::max(most[v], V::load(scores + t + v * V::kLanes));
  }
  for (int64_t v = 1; v < kVecs; ++v) most[0] = V::max(most[0], most[v]);
  const float max = V::most(most[0]);
  for (int64_t t = begin; t < end; t += kBlockTokens) {
    for (int64_t v = 0; v < kVecs; ++v) {
      const F p = V::exp(V::sub(V::load(scores + t + v * V::kLanes), V::set1(max)));
      chains[v] = V::add(chains[v], p);
      put(t + v * V::kLanes, p);
    }
  }
  return {max, V::sum16(chains)};
}

/// out = sums, joined to what is there; and at last the division.
template <class V>
void join_sums(const Join& join, const float* sums, int64_t n, float* out) {
  using F = typename V::F;
  for (int64_t i = 0; i < n; i += V::kLanes) {
    F sum = V::load(sums + i);
    if (!join.is_first) {
      sum = V::fma(V::load(out + i, n - i), V::set1(join.old_factor), V::mul(sum, V::set1(join.factor)));
    }
    V::store(out + i, sum, n - i);
  }
}
template <class V>
void divide(float sum, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += V::kLanes) {
    V::store(out + i, V::add(V::div(V::load(out + i, n - i), V::set1(sum)), V::zero()), n - i);
  }
}

}  // namespace
}  // namespace headrace
