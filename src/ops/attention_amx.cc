// Attention over a bf16 cache in AMX tiles: 16 pairs of a row and a query head by 16 tokens, or by 16 components of the
// values. Softmax is in vectors. Keys and values lie in the cache as tiles are read.
#include "ops/attention_kernels.h"
#include "ops/attention_vectors_avx512.h"
#include "ops/flush_subnormals.h"
#include "ops/tile_config_amx.h"

namespace headrace::amx {
namespace {

using avx512::AttentionVectors;

constexpr int64_t kTilePairs = 16;
constexpr int64_t kTileRows = 64;
constexpr int64_t kTileK = 32;                           // components of a product with keys
constexpr int64_t kPairElements = 16384;                 // queries, and sums, of all pairs
constexpr int64_t kWeightStride = kAttentionChunk + 32;  // as kScoreStride
constexpr int64_t kEdgeBlocks = kTileRows / kBlockTokens + 2;

struct Bf16 {
  static constexpr bool kHasScales = false;
};

class TileAttention {
 public:
  static void run(const AttentionArgs& a, RowRange items) {
    Memory memory;
    const int64_t room = largest(a.layout.head_dim, kv_value_room(a.layout));
    for_each_tile(a, items, least(kMaxPairs, kPairElements / room / kTilePairs * kTilePairs), kTileRows,
                  [&](const AttentionTile& tile) { TileAttention(a, tile, memory).attend(); });
    _tile_release();
  }

 private:
  using V = AttentionVectors;

  struct Memory {
    alignas(64) uint16_t queries[kPairElements];
    alignas(64) float sums[kPairElements + kTilePairs * kMaxHeadDim];  // a tile may begin at any pair
    alignas(64) float scores[kMaxPairs * kScoreStride];
    alignas(64) uint16_t weights[(kMaxPairs + kTilePairs) * kWeightStride];
    alignas(64) std::byte edges[2 * kEdgeBlocks][kBlockTokens * kMaxHeadDim * 2];
    Softmax totals[kMaxPairs];
    Join joins[kMaxPairs];
  };

  TileAttention(const AttentionArgs& a, const AttentionTile& tile, Memory& memory)
      : a_(a),
        tile_(tile),
        m_(memory),
        walk_(a, tile),
        head_dim_(a.layout.head_dim),
        v_head_dim_(a.layout.v_head_dim),
        room_(kv_value_room(a.layout)),
        pairs_(tile.rows * tile.heads),
        height_(static_cast<int>(least(pairs_, kTilePairs))) {}

  void attend() {
    load_queries();
    Chunk chunk;
    while (walk_.next(chunk)) {
      const Visible rows = walk_.rows(chunk);
      configure(kTileK);
      score_blocks(chunk);
      for (int64_t i = rows.begin * tile_.heads; i < rows.end * tile_.heads; ++i) weigh(chunk, i);
      configure(kBlockTokens);
      add_values(chunk, rows);
      for (int64_t i = rows.begin * tile_.heads; i < rows.end * tile_.heads; ++i) {
        join_sums<V>(m_.joins[i], m_.sums + i * room_, v_head_dim_, out(i));
      }
    }
    for (int64_t i = 0; i < pairs_; ++i) divide<V>(m_.totals[i].sum, v_head_dim_, out(i));
  }

  [[nodiscard]] int64_t head_index(int64_t pair) const {
    return (tile_.row + pair / tile_.heads) * a_.heads + tile_.head + pair % tile_.heads;
  }
  [[nodiscard]] float* out(int64_t pair) const { return a_.out + head_index(pair) * v_head_dim_; }

  /// Tiles 0 to 3: sums; 4 and 5: pairs by `product_k`; 6 and 7: product_k / 2 rows of 16 pairs of elements.
  void configure(int64_t product_k) const {
    TileConfig config;
    for (int t = 0; t < 8; ++t) {
      config.shape(t, t < 6 ? height_ : static_cast<int>(product_k / 2),
                   t == 4 || t == 5 ? static_cast<int>(product_k * 2) : 64);
    }
    config.load();
  }

  void load_queries() {
    for (int64_t i = 0; i < pairs_; ++i) {
      const float* q = a_.q + head_index(i) * head_dim_;
      for (int64_t j = 0; j < head_dim_; j += 16) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(m_.queries + i * head_dim_ + j),
                           avx512::round_to_bf16(_mm512_loadu_ps(q + j)));
      }
    }
  }

  /// Dot products of all pairs with all tokens of the chunk; a last tile of pairs is read and written whole.
  void score_blocks(const Chunk& chunk) {
    for (int64_t block = 0; block < chunk.num_blocks; block += 2) {
      const bool two_blocks = block + 1 < chunk.num_blocks;
      const std::byte* keys = chunk.keys[block];
      const std::byte* other_keys = chunk.keys[two_blocks ? block + 1 : block];
      for (int64_t pair = 0; pair < pairs_; pair += 2 * kTilePairs) {
        const bool two_tiles = pair + kTilePairs < pairs_;
        const uint16_t* q = m_.queries + pair * head_dim_;
        const int64_t stride = head_dim_ * 2;
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (int64_t k = 0; k < head_dim_; k += kTileK) {
          _tile_loadd(6, keys + k * kBlockTokens * 2, 64);
          _tile_loadd(4, q + k, stride);
          _tile_dpbf16ps(0, 4, 6);
          if (two_tiles) {
            _tile_loadd(5, q + kTilePairs * head_dim_ + k, stride);
            _tile_dpbf16ps(2, 5, 6);
          }
          if (two_blocks) {
            _tile_loadd(7, other_keys + k * kBlockTokens * 2, 64);
            _tile_dpbf16ps(1, 4, 7);
            if (two_tiles) _tile_dpbf16ps(3, 5, 7);
          }
        }
        float* to = m_.scores + pair * kScoreStride + block * kBlockTokens;
        _tile_stored(0, to, kScoreStride * 4);
        if (two_blocks) _tile_stored(1, to + kBlockTokens, kScoreStride * 4);
        to += kTilePairs * kScoreStride;
        if (two_tiles) _tile_stored(2, to, kScoreStride * 4);
        if (two_tiles && two_blocks) _tile_stored(3, to + kBlockTokens, kScoreStride * 4);
      }
    }
  }

  /// Weights of one pair; 0 in blocks of the chunk that its row does not see.
  void weigh(const Chunk& chunk, int64_t pair) {
    const int64_t row = pair / tile_.heads;
    const Visible visible = walk_.visible(chunk, row);
    uint16_t* weights = m_.weights + pair * kWeightStride;
    const auto put = [&](int64_t t, __m512 p) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(weights + t), avx512::round_to_bf16(p));
    };
    const Softmax of_chunk = exponentials<V, Bf16>(a_, chunk, visible, m_.scores + pair * kScoreStride, put);
    m_.joins[pair] = join<V>(m_.totals[pair], of_chunk, walk_.is_first(chunk, row));
    for (int64_t b = 0; b < chunk.num_blocks; ++b) {
      if (b * kBlockTokens >= visible.end || (b + 1) * kBlockTokens <= visible.begin) {
        put(b * kBlockTokens, _mm512_setzero_ps());
      }
    }
  }

  /// Sums of rows [rows.begin, rows.end). A weight of 0 is no protection from infinities and NaN: blocks that not all
  /// rows see whole are copied, with 0 where no row sees them, and where some row sees a value that is not finite and
  /// another does not, each goes alone. Then what a row writes to the pairs after its own is overwritten by theirs.
  void add_values(const Chunk& chunk, Visible rows) {
    const std::byte* values[kChunkBlocks];
    if (!clean_values(chunk, rows, values)) {
      for (int64_t row = rows.begin; row < rows.end; ++row) add_values(chunk, {row, row + 1});
      return;
    }
    for (int64_t pair = rows.begin * tile_.heads; pair < rows.end * tile_.heads; pair += 2 * kTilePairs) {
      const bool two_tiles = pair + kTilePairs < rows.end * tile_.heads;
      for (int64_t column = 0; column < room_; column += 32) {
        add_tiles(chunk.num_blocks, values, pair, two_tiles, column, column + 16 < room_);
      }
    }
  }

  void add_tiles(int64_t num_blocks, const std::byte* const* values, int64_t pair, bool two_tiles, int64_t column,
                 bool two_columns) {
    const int64_t value_stride = room_ * 4, weight_stride = kWeightStride * 2;
    const uint16_t* weights = m_.weights + pair * kWeightStride;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t block = 0; block < num_blocks; ++block, weights += kBlockTokens) {
      const std::byte* v = values[block] + column * 4;
      _tile_loadd(6, v, value_stride);
      _tile_loadd(4, weights, weight_stride);
      _tile_dpbf16ps(0, 4, 6);
      if (two_tiles) {
        _tile_loadd(5, weights + kTilePairs * kWeightStride, weight_stride);
        _tile_dpbf16ps(2, 5, 6);
      }
      if (two_columns) {
        _tile_loadd(7, v + 64, value_stride);
        _tile_dpbf16ps(1, 4, 7);
        if (two_tiles) _tile_dpbf16ps(3, 5, 7);
      }
    }
    float* to = m_.sums + pair * room_ + column;
    _tile_stored(0, to, room_ * 4);
    if (two_columns) _tile_stored(1, to + 16, room_ * 4);
    to += kTilePairs * room_;
    if (two_tiles) _tile_stored(2, to, room_ * 4);
    if (two_tiles && two_columns) _tile_stored(3, to + 16, room_ * 4);
  }

  /// Where the values of each block are to be read. False where a value that is not finite is seen by some of the rows.
  bool clean_values(const Chunk& chunk, Visible rows, const std::byte** values) {
    const Visible first = walk_.visible(chunk, rows.begin), last = walk_.visible(chunk, rows.end - 1);
    const Visible by_all{last.begin, first.end}, by_some{first.begin, last.end};
    int64_t num_edges = 0;
    for (int64_t b = 0; b < chunk.num_blocks; ++b) {
      values[b] = chunk.values[b];
      const int64_t begin = b * kBlockTokens, end = begin + kBlockTokens;
      if (by_all.begin <= begin && end <= by_all.end) continue;
      std::byte* to = m_.edges[num_edges++];
      values[b] = to;
      for (int64_t t = begin; t < end; t += 2) {
        // Of a pair's lanes, those that count.
        const auto part = [&](Visible tokens) {
          const bool even = tokens.begin <= t && t < tokens.end, odd = tokens.begin <= t + 1 && t + 1 < tokens.end;
          return _mm512_set1_epi32(static_cast<int>((even ? 0xffffu : 0u) | (odd ? 0xffff0000u : 0u)));
        };
        const __m512i some = part(by_some), all = part(by_all), exponent = _mm512_set1_epi16(0x7f80);
        for (int64_t i = 0; i < room_; i += 16) {
          const int64_t offset = ((t - begin) / 2 * room_ + i) * 4;
          const __m512i v = _mm512_and_si512(_mm512_loadu_si512(chunk.values[b] + offset), some);
          const __m512i unshared = _mm512_and_si512(_mm512_andnot_si512(all, v), exponent);
          if (i < v_head_dim_ && _mm512_cmpeq_epi16_mask(unshared, exponent) != 0) return false;
          _mm512_store_si512(to + offset, v);
        }
      }
    }
    return true;
  }

  const AttentionArgs& a_;
  const AttentionTile& tile_;
  Memory& m_;
  Walk walk_;
  int64_t head_dim_, v_head_dim_, room_;
  int64_t pairs_;
  int height_;  ///< of a tile of pairs
};

[[gnu::noinline]] void run_tiles(const AttentionArgs& a, RowRange items) { TileAttention::run(a, items); }

}  // namespace

/// A head of another size would need tiles of other shapes for its rest.
void attention_bf16(const AttentionArgs& a, RowRange items) noexcept {
  if (a.layout.head_dim % kTileK != 0) return avx512::attention_bf16(a, items);
  const FlushSubnormals flush;
  run_tiles(a, items);
}

}  // namespace headrace::amx
