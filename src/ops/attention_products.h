#pragma once

#include "ops/attention_vectors.h"

/// Attention with products in vectors, for every cache type. Besides what attention_vectors.h names,
/// V has kScoreVecs and kValueVecs: by the pairs that share them, the vectors of tiles that fit the registers;
/// E is one of two kinds:
///   kIsPaired = false   chains over single elements, of kBytes; load (of the first n lanes too) decodes kLanes of
///   them;
///                       kDecodes: that takes more than a load
///   kIsPaired = true    chains over even and odd elements; load gives kLanes pairs, of kBytes, even and odd their
///                       halves
/// query and weight round what meets keys and values.
///
/// In registers tiles of up to kTilePairs pairs share a vector. With more pairs than kDirectPairs, what takes long to
/// decode is decoded once for all tiles: a panel of a few blocks, in the L1 cache.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

constexpr int kTilePairs = 4;
constexpr int64_t kDirectPairs = 2 * kTilePairs;
constexpr int64_t kTileRows = 16;       // what a row sees beyond the others of its tile, it adds up alone
constexpr int64_t kPairFloats = 16384;  // queries, and sums, of a tile's pairs
constexpr int64_t kPanelFloats = 8192;  // 32 KiB; or one block, if that is more
constexpr int64_t kPanelBlocks = 4;

/// A number of pairs as a type, so that a tile's loops unroll.
template <int n>
struct Count {
  static constexpr int value = n;
};
template <class Fn>
void with_count(int64_t n, const Fn& fn) {
  n == 1 ? fn(Count<1>()) : n == 2 ? fn(Count<2>()) : n == 3 ? fn(Count<3>()) : fn(Count<4>());
}

/// Where decoded panels are read from: f32, never fetched ahead.
template <class V>
struct PanelElement {
  static constexpr bool kIsPaired = false, kFetches = false;
  static constexpr int64_t kBytes = 4;
  static typename V::F load(const std::byte* p) { return V::load(reinterpret_cast<const float*>(p)); }
  static typename V::F load(const std::byte* p, int64_t) { return load(p); }  // rows have room for whole vectors
};

inline int64_t whole_vectors(int64_t n) { return (n + 15) / 16 * 16; }

template <class V, class E>
class VectorAttention {
 public:
  static void run(const AttentionArgs& a, RowRange items) {
    Memory memory;
    const int64_t room = largest(whole_vectors(a.layout.head_dim), whole_vectors(a.layout.v_head_dim));
    for_each_tile(a, items, least(kMaxPairs, kPairFloats / room), kTileRows,
                  [&](const AttentionTile& tile) { VectorAttention(a, tile, memory).attend(); });
  }

 private:
  using F = typename V::F;
  static constexpr int64_t kVecs = kBlockTokens / V::kLanes;

  struct Memory {
    alignas(64) float queries[kPairFloats];
    alignas(64) float sums[kPairFloats];
    alignas(64) float scores[kMaxPairs * kScoreStride];
    alignas(64) float panel[2 * kPanelFloats];
    Softmax totals[kMaxPairs];
    Join joins[kMaxPairs];
  };
  static_assert(kMaxHeadDim * kBlockTokens <= 2 * kPanelFloats && kMaxHeadDim <= kPairFloats);

  /// Pairs [begin, end) of the tile.
  struct Pairs {
    int64_t begin = 0, end = 0;
  };

  VectorAttention(const AttentionArgs& a, const AttentionTile& tile, Memory& memory)
      : a_(a),
        tile_(tile),
        m_(memory),
        walk_(a, tile),
        head_dim_(a.layout.head_dim),
        v_head_dim_(a.layout.v_head_dim),
        query_stride_(whole_vectors(head_dim_)),
        sum_stride_(whole_vectors(v_head_dim_)) {}

  void attend() {
    load_queries();
    Chunk chunk;
    while (walk_.next(chunk)) {
      const Visible rows = walk_.rows(chunk);
      const Pairs pairs{rows.begin * tile_.heads, rows.end * tile_.heads};
      const bool decodes = decodes_once(pairs);
      decodes ? score_panels(chunk, pairs) : score_blocks<E>(chunk.keys, chunk.num_blocks, chunk, pairs, 0);
      for (int64_t i = pairs.begin; i < pairs.end; ++i) weigh(chunk, i);
      add_values(chunk, rows, decodes);
      for (int64_t i = pairs.begin; i < pairs.end; ++i) {
        join_sums<V>(m_.joins[i], sums(i), v_head_dim_, out(i));
      }
    }
    for (int64_t i = 0; i < tile_.rows * tile_.heads; ++i) divide<V>(m_.totals[i].sum, v_head_dim_, out(i));
  }

  [[nodiscard]] static bool decodes_once(Pairs pairs) {
    if constexpr (E::kIsPaired) {
      return false;
    } else {
      return E::kDecodes && pairs.end - pairs.begin > kDirectPairs;
    }
  }
  [[nodiscard]] float* scores(int64_t pair) { return m_.scores + pair * kScoreStride; }
  [[nodiscard]] float* sums(int64_t pair) { return m_.sums + pair * sum_stride_; }
  [[nodiscard]] int64_t head_index(int64_t pair) const {
    return (tile_.row + pair / tile_.heads) * a_.heads + tile_.head + pair % tile_.heads;
  }
  [[nodiscard]] float* out(int64_t pair) const { return a_.out + head_index(pair) * v_head_dim_; }

  void load_queries() {
    for (int64_t i = 0; i < tile_.rows * tile_.heads; ++i) {
      const float* q = a_.q + head_index(i) * head_dim_;
      float* to = m_.queries + i * query_stride_;
      for (int64_t j = 0; j < query_stride_; j += V::kLanes) V::store(to + j, E::query(V::load(q + j, head_dim_ - j)));
    }
  }

  void weigh(const Chunk& chunk, int64_t pair) {
    const int64_t row = pair / tile_.heads;
    float* p = scores(pair);
    const auto put = [&](int64_t t, F weight) {
      weight = E::weight(weight);
      if constexpr (E::kHasScales) weight = V::mul(weight, E::value_scales(a_.layout, chunk, t));
      V::store(p + t, weight);
    };
    const Softmax of_chunk = exponentials<V, E>(a_, chunk, walk_.visible(chunk, row), p, put);
    m_.joins[pair] = join<V>(m_.totals[pair], of_chunk, walk_.is_first(chunk, row));
  }

  /// fn(first pair, Count) over tiles of pairs as equal as can be: 5 as 3 and 2, not 4 and 1.
  template <class Fn>
  static void for_each_count(Pairs pairs, const Fn& fn) {
    const int64_t count = pairs.end - pairs.begin, tiles = (count + kTilePairs - 1) / kTilePairs;
    const int64_t size = (count + tiles - 1) / tiles;
    for (int64_t i = pairs.begin; i < pairs.end; i += size) {
      with_count(least(size, pairs.end - i), [&](auto n) { fn(i, n); });
    }
  }

  // Scores.

  void score_panels(const Chunk& chunk, Pairs pairs) {
    const int64_t panel_blocks = largest(1, least(kPanelBlocks, kPanelFloats / (head_dim_ * kBlockTokens)));
    for (int64_t block = 0; block < chunk.num_blocks; block += panel_blocks) {
      const std::byte* keys[kPanelBlocks];
      const int64_t count = least(panel_blocks, chunk.num_blocks - block);
      for (int64_t b = 0; b < count; ++b) {
        float* to = m_.panel + b * head_dim_ * kBlockTokens;
        keys[b] = reinterpret_cast<const std::byte*>(to);
        for (int64_t i = 0; i < head_dim_ * kBlockTokens; i += V::kLanes) {
          decode(chunk.keys[block + b] + i * E::kBytes, V::kLanes, to + i);
        }
      }
      score_blocks<PanelElement<V>>(keys, count, chunk, pairs, block * kBlockTokens);
    }
  }

  /// Dot products of the pairs with the tokens of `num_blocks` blocks, to their scores from token `t` on. All tiles of
  /// pairs go through some vectors before the next.
  template <class K>
  void score_blocks(const std::byte* const* keys, int64_t num_blocks, const Chunk& chunk, Pairs pairs, int64_t t) {
    constexpr int kMost = V::kScoreVecs[1];
    const int64_t vecs = num_blocks * kVecs;
    const int64_t size =
        pairs.end - pairs.begin >= kTilePairs ? V::kScoreVecs[kTilePairs] : V::kScoreVecs[pairs.end - pairs.begin];
    for (int64_t u = 0; u < vecs; u += size) {
      const int64_t count = least(size, vecs - u);
      const std::byte *at[kMost], *ahead[kMost];
      for (int64_t v = 0; v < count; ++v) {
        const int64_t block = (u + v) / kVecs, next = block + kBlocksAhead;
        const int64_t part = (u + v) % kVecs * V::kLanes * K::kBytes;
        at[v] = keys[block] + part;
        // After the keys come the values.
        if (K::kFetches)
          ahead[v] = next < num_blocks ? keys[next] : chunk.values[least(next, 2 * num_blocks - 1) - num_blocks];
      }
      for_each_count(pairs, [&](int64_t pair, auto n) {
        score_tiles<K, n.value, V::kScoreVecs[n.value]>(at, ahead, count, pair, t + u * V::kLanes);
      });
    }
  }

  template <class K, int kPairs, int kTileVecs>
  void score_tiles(const std::byte* const* keys, const std::byte* const* ahead, int64_t count, int64_t pair,
                   int64_t t) {
    int64_t v = 0;
    for (; v + kTileVecs <= count; v += kTileVecs) {
      score_tile<K, kPairs, kTileVecs>(keys + v, ahead + v, m_.queries + pair * query_stride_,
                                       scores(pair) + t + v * V::kLanes);
    }
    if constexpr (kTileVecs > 1) {
      if (v < count) score_tiles<K, kPairs, kTileVecs / 2>(keys + v, ahead + v, count - v, pair, t + v * V::kLanes);
    }
  }

  /// kTileVecs vectors of tokens: each chain runs over the components.
  template <class K, int kPairs, int kTileVecs>
  void score_tile(const std::byte* const* keys, const std::byte* const* ahead, const float* q, float* to) const {
    F sum[kPairs][kTileVecs];
#pragma GCC unroll 4
    for (int h = 0; h < kPairs; ++h) {
#pragma GCC unroll 8
      for (int v = 0; v < kTileVecs; ++v) sum[h][v] = V::zero();
    }
    if constexpr (K::kIsPaired) {
      for (int64_t group = 0; group < head_dim_; group += 32) {
        F even[kPairs][kTileVecs], odd[kPairs][kTileVecs];
#pragma GCC unroll 4
        for (int h = 0; h < kPairs; ++h) {
#pragma GCC unroll 8
          for (int v = 0; v < kTileVecs; ++v) even[h][v] = odd[h][v] = V::zero();
        }
        const int64_t end = least(group + 32, head_dim_);
        for (int64_t i = group; i < end; i += 2) {
          const int64_t offset = i / 2 * kBlockTokens * K::kBytes;
#pragma GCC unroll 8
          for (int v = 0; v < kTileVecs; ++v) {
            const auto k = K::load(keys[v] + offset);
            const F k_even = K::even(k), k_odd = K::odd(k);
            if (v % kVecs == 0) _mm_prefetch(ahead[v] + offset, _MM_HINT_T0);
#pragma GCC unroll 4
            for (int h = 0; h < kPairs; ++h) {
              even[h][v] = V::fma(V::set1(q[h * query_stride_ + i]), k_even, even[h][v]);
              odd[h][v] = V::fma(V::set1(q[h * query_stride_ + i + 1]), k_odd, odd[h][v]);
            }
          }
        }
#pragma GCC unroll 4
        for (int h = 0; h < kPairs; ++h) {
#pragma GCC unroll 8
          for (int v = 0; v < kTileVecs; ++v) sum[h][v] = V::add(sum[h][v], V::add(even[h][v], odd[h][v]));
        }
      }
    } else {
      for (int64_t i = 0; i < head_dim_; ++i) {
        const int64_t offset = i * kBlockTokens * K::kBytes;
        if (K::kFetches && offset % 64 == 0) {
#pragma GCC unroll 8
          for (int64_t v = 0; v < kTileVecs; v += kVecs) _mm_prefetch(ahead[v] + offset, _MM_HINT_T0);
        }
#pragma GCC unroll 8
        for (int v = 0; v < kTileVecs; ++v) {
          const F k = K::load(keys[v] + offset);
#pragma GCC unroll 4
          for (int h = 0; h < kPairs; ++h) sum[h][v] = V::fma(V::set1(q[h * query_stride_ + i]), k, sum[h][v]);
        }
      }
    }
#pragma GCC unroll 4
    for (int h = 0; h < kPairs; ++h) {
#pragma GCC unroll 8
      for (int v = 0; v < kTileVecs; ++v) V::store(to + h * kScoreStride + v * V::kLanes, sum[h][v]);
    }
  }

  // Values.

  /// Sums of all rows over what they see of the chunk: what all of them see together, the rest row by row.
  void add_values(const Chunk& chunk, Visible rows, bool decodes) {
    for (int64_t i = rows.begin * tile_.heads; i < rows.end * tile_.heads; ++i) {
      for (int64_t j = 0; j < sum_stride_; j += V::kLanes) V::store(sums(i) + j, V::zero());
    }
    const Visible common = walk_.common(chunk, rows);
    const Pairs all{rows.begin * tile_.heads, rows.end * tile_.heads};
    if (common.begin >= common.end) {
      for (int64_t row = rows.begin; row < rows.end; ++row) add_row_values(chunk, row, walk_.visible(chunk, row));
      return;
    }
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      add_row_values(chunk, row, {walk_.visible(chunk, row).begin, common.begin});
    }
    decodes ? add_panels(chunk, all, common)
            : add_blocks<E>(chunk.values, chunk.num_blocks, chunk.following, kv_value_room(a_.layout), all, common, 0);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      add_row_values(chunk, row, {common.end, walk_.visible(chunk, row).end});
    }
  }
  void add_row_values(const Chunk& chunk, int64_t row, Visible tokens) {
    if (tokens.begin >= tokens.end) return;
    add_blocks<E>(chunk.values, chunk.num_blocks, chunk.following, kv_value_room(a_.layout),
                  {row * tile_.heads, (row + 1) * tile_.heads}, tokens, 0);
  }

  void add_panels(const Chunk& chunk, Pairs pairs, Visible tokens) {
    const int64_t panel_blocks = largest(1, least(kPanelBlocks, kPanelFloats / (sum_stride_ * kBlockTokens)));
    for (int64_t block = tokens.begin / kBlockTokens; block * kBlockTokens < tokens.end; block += panel_blocks) {
      const std::byte* values[kPanelBlocks];
      const int64_t begin = block * kBlockTokens;
      const Visible here{largest(tokens.begin - begin, 0), least(tokens.end - begin, panel_blocks * kBlockTokens)};
      for (int64_t b = 0; b * kBlockTokens < here.end; ++b) {
        float* to = m_.panel + b * kBlockTokens * sum_stride_;
        values[b] = reinterpret_cast<const std::byte*>(to);
        const std::byte* from = chunk.values[block + b];
        for (int64_t t = 0; t < kBlockTokens; ++t, to += sum_stride_, from += v_head_dim_ * E::kBytes) {
          for (int64_t i = 0; i < v_head_dim_; i += V::kLanes) {
            decode(from + i * E::kBytes, v_head_dim_ - i, to + i);
          }
        }
      }
      add_blocks<PanelElement<V>>(values, panel_blocks, nullptr, sum_stride_, pairs, here, begin);
    }
  }
  /// kLanes elements, of which the first n exist, to f32.
  static void decode(const std::byte* from, int64_t n, float* to) {
    if constexpr (!E::kIsPaired) V::store(to, n >= V::kLanes ? E::load(from) : E::load(from, n));
  }

  /// Blocks of values, with rows of `width` elements; their first token is token `t` of the scores.
  struct Blocks {
    const std::byte* const* values;
    int64_t num_blocks;
    const std::byte* const* following;
    int64_t width;
    Visible tokens;
    int64_t t;
  };

  template <class K>
  void add_blocks(const std::byte* const* values, int64_t num_blocks, const std::byte* const* following, int64_t width,
                  Pairs pairs, Visible tokens, int64_t t) {
    const Blocks blocks{values, num_blocks, following, width, tokens, t};
    for_each_count(pairs,
                   [&](int64_t pair, auto n) { value_tiles<K, n.value, V::kValueVecs[n.value]>(blocks, pair, 0); });
  }

  template <class K, int kPairs, int kTileVecs>
  void value_tiles(const Blocks& blocks, int64_t pair, int64_t column) {
    for (; column + (kTileVecs - 1) * V::kLanes < v_head_dim_; column += kTileVecs * V::kLanes) {
      value_tile<K, kPairs, kTileVecs>(blocks, column, scores(pair) + blocks.t, sums(pair) + column);
    }
    if constexpr (kTileVecs > 1) {
      if (column < v_head_dim_) value_tiles<K, kPairs, kTileVecs / 2>(blocks, pair, column);
    }
  }

  /// Adds the tokens' part to kTileVecs vectors of sums: each chain runs over the tokens.
  template <class K, int kPairs, int kTileVecs>
  void value_tile(const Blocks& blocks, int64_t column, const float* p, float* sums) const {
    F sum[kPairs][kTileVecs];
#pragma GCC unroll 4
    for (int h = 0; h < kPairs; ++h) {
#pragma GCC unroll 8
      for (int v = 0; v < kTileVecs; ++v) sum[h][v] = V::load(sums + h * sum_stride_ + v * V::kLanes);
    }
    const int64_t first = blocks.tokens.begin / kBlockTokens;
    for (int64_t block = first; block * kBlockTokens < blocks.tokens.end; ++block) {
      const int64_t begin = largest(blocks.tokens.begin - block * kBlockTokens, 0);
      const int64_t end = least(blocks.tokens.end - block * kBlockTokens, kBlockTokens);
      const std::byte* ahead = nullptr;
      if (K::kFetches) {
        const int64_t next = block + kBlocksAhead;
        ahead = next < blocks.num_blocks ? blocks.values[next] : blocks.following[next - blocks.num_blocks];
      }
      if constexpr (K::kIsPaired) {
        add_paired_block<K, kPairs, kTileVecs>(blocks, column, block, {begin, end}, ahead, p, sum);
      } else {
        add_block<K, kPairs, kTileVecs>(blocks, column, block, {begin, end}, ahead, p, sum);
      }
    }
#pragma GCC unroll 4
    for (int h = 0; h < kPairs; ++h) {
#pragma GCC unroll 8
      for (int v = 0; v < kTileVecs; ++v) V::store(sums + h * sum_stride_ + v * V::kLanes, sum[h][v]);
    }
  }

  template <class K, int kPairs, int kTileVecs>
  [[gnu::always_inline]] void add_block(const Blocks& blocks, int64_t column, int64_t block, Visible tokens,
                                        const std::byte* ahead, const float* p, F (&sum)[kPairs][kTileVecs]) const {
    const std::byte* values = blocks.values[block];
    const int64_t last = v_head_dim_ - column - (kTileVecs - 1) * V::kLanes;  // columns from the last vector on
    for (int64_t t = tokens.begin; t < tokens.end; ++t) {
      const float* weights = p + block * kBlockTokens + t;
#pragma GCC unroll 8
      for (int v = 0; v < kTileVecs; ++v) {
        const int64_t offset = (t * blocks.width + column + v * V::kLanes) * K::kBytes;
        const F row = v < kTileVecs - 1 ? K::load(values + offset) : K::load(values + offset, last);
        if (K::kFetches && v * V::kLanes * K::kBytes % 64 == 0) _mm_prefetch(ahead + offset, _MM_HINT_T0);
#pragma GCC unroll 4
        for (int h = 0; h < kPairs; ++h) sum[h][v] = V::fma(V::set1(weights[h * kScoreStride]), row, sum[h][v]);
      }
    }
  }

  template <class K, int kPairs, int kTileVecs>
  [[gnu::always_inline]] void add_paired_block(const Blocks& blocks, int64_t column, int64_t block, Visible tokens,
                                               const std::byte* ahead, const float* p,
                                               F (&sum)[kPairs][kTileVecs]) const {
    const std::byte* values = blocks.values[block];
    F even[kPairs][kTileVecs], odd[kPairs][kTileVecs];
#pragma GCC unroll 4
    for (int h = 0; h < kPairs; ++h) {
#pragma GCC unroll 8
      for (int v = 0; v < kTileVecs; ++v) even[h][v] = odd[h][v] = V::zero();
    }
    for (int64_t t = tokens.begin / 2 * 2; t < tokens.end; t += 2) {
      const bool has_even = t >= tokens.begin, has_odd = t + 1 < tokens.end;
      const float* weights = p + block * kBlockTokens + t;
#pragma GCC unroll 8
      for (int v = 0; v < kTileVecs; ++v) {
        const int64_t offset = (t / 2 * blocks.width + column + v * V::kLanes) * K::kBytes;
        const auto row = K::load(values + offset);
        if (v * V::kLanes * K::kBytes % 64 == 0) _mm_prefetch(ahead + offset, _MM_HINT_T0);
        if (has_even) {
#pragma GCC unroll 4
          for (int h = 0; h < kPairs; ++h) {
            even[h][v] = V::fma(V::set1(weights[h * kScoreStride]), K::even(row), even[h][v]);
          }
        }
        if (has_odd) {
#pragma GCC unroll 4
          for (int h = 0; h < kPairs; ++h) {
            odd[h][v] = V::fma(V::set1(weights[h * kScoreStride + 1]), K::odd(row), odd[h][v]);
          }
        }
      }
    }
#pragma GCC unroll 4
    for (int h = 0; h < kPairs; ++h) {
#pragma GCC unroll 8
      for (int v = 0; v < kTileVecs; ++v) sum[h][v] = V::add(sum[h][v], V::add(even[h][v], odd[h][v]));
    }
  }

  const AttentionArgs& a_;
  const AttentionTile& tile_;
  Memory& m_;
  Walk walk_;
  int64_t head_dim_, v_head_dim_;
  int64_t query_stride_, sum_stride_;  ///< floats from one pair's to the next
};

}  // namespace
}  // namespace headrace
