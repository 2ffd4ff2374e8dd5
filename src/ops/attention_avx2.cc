#include "ops/attention.h"
#include "ops/vector_math_avx2.h"

namespace headrace::avx2 {
namespace {

// All query heads of a KV head go through the context together, so that its keys and values are read once. In registers
// a tile of up to kTileHeads of them shares each loaded vector. The tiles' shapes give 8 to 12 chains in flight, beside
// a broadcast value of each head, in 16 registers.
constexpr int kTileHeads = 4;
constexpr int kTileBlocks[kTileHeads + 1] = {0, 4, 2, 2, 1};  // of score tiles by heads: two vectors of keys a block
constexpr int kTileVecs[kTileHeads + 1] = {0, 8, 4, 4, 2};    // of value tiles by heads
constexpr int64_t kPassHeads = 64;  // heads that read the context together; bigger groups take several passes
constexpr int64_t kValueBlocksAhead = 2;
constexpr int64_t kChunkBlocks = kAttentionChunk / kBlockTokens;

struct F32 {
  static constexpr int64_t kBytes = 4;
  static __m256 load(const std::byte* p) noexcept { return _mm256_loadu_ps(reinterpret_cast<const float*>(p)); }
  /// The first n of a vector, reading no more.
  static __m256 load(const std::byte* p, int64_t n) noexcept {
    return _mm256_maskload_ps(reinterpret_cast<const float*>(p), first_lanes(n));
  }
};
struct F16 {
  static constexpr int64_t kBytes = 2;
  static __m256 load(const std::byte* p) noexcept {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static __m256 load(const std::byte* p, int64_t n) noexcept {
    if (n == 8) return load(p);
    alignas(16) std::byte half[16] = {};
    for (int64_t i = 0; i < n * kBytes; ++i) half[i] = p[i];
    return load(half);
  }
};

/// The visible part of a chunk for one KV head. Positions count from the first token of keys[0].
struct Chunk {
  const std::byte* keys[kChunkBlocks];  // of each block
  const std::byte* values[kChunkBlocks];
  int64_t num_blocks;
  int64_t first;  // visible positions are [first, end)
  int64_t end;
  const std::byte* following;  // the keys that are read next; only fetched ahead
};

/// How a chunk's sums join those before it.
struct Join {
  bool first_chunk;
  float old_factor;
  float factor;
};

/// Maximum and sum so far.
struct Softmax {
  float max;
  float sum;
};

int64_t at_most(int64_t a, int64_t b) noexcept { return a < b ? a : b; }

/// scores[h][b][token] of kHeads heads and kBlocks blocks: lanes are tokens, each chain runs over the components.
/// While a block is read, the one that is read after it is fetched.
template <class Element, int kHeads, int kBlocks>
void score_tile(const float* q, int64_t head_dim, float scale, const std::byte* const* keys,
                const std::byte* const* ahead, float* scores) noexcept {
  __m256 dot[kHeads][kBlocks][2];
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) dot[h][b][0] = dot[h][b][1] = _mm256_setzero_ps();
  }
  for (int64_t i = 0; i < head_dim; ++i) {
    const int64_t offset = i * kBlockTokens * Element::kBytes;
    __m256 component[kHeads];
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) component[h] = _mm256_broadcast_ss(q + h * head_dim + i);
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      _mm_prefetch(ahead[b] + offset, _MM_HINT_T0);
#pragma GCC unroll 2
      for (int side = 0; side < 2; ++side) {
        const __m256 k = Element::load(keys[b] + offset + side * 8 * Element::kBytes);
#pragma GCC unroll 4
        for (int h = 0; h < kHeads; ++h) dot[h][b][side] = _mm256_fmadd_ps(component[h], k, dot[h][b][side]);
      }
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 2
      for (int side = 0; side < 2; ++side) {
        _mm256_storeu_ps(scores + h * kAttentionChunk + b * kBlockTokens + side * 8,
                         _mm256_mul_ps(_mm256_set1_ps(scale), dot[h][b][side]));
      }
    }
  }
}

/// Scores of kHeads heads against the whole chunk; those outside the visible part are meaningless.
template <class Element, int kHeads>
void score_heads(const Chunk& chunk, const float* q, int64_t head_dim, float scale, float* scores) noexcept {
  constexpr int kBlocks = kTileBlocks[kHeads];
  for (int64_t block = 0; block < chunk.num_blocks;) {
    const bool whole = chunk.num_blocks - block >= kBlocks;
    const int64_t count = whole ? kBlocks : 1;
    const std::byte* ahead[kBlocks];
    for (int64_t b = 0; b < count; ++b) {  // after the keys come the values
      const int64_t next = block + count + b;
      ahead[b] = next < chunk.num_blocks ? chunk.keys[next] : chunk.values[next - chunk.num_blocks];
    }
    float* out = scores + block * kBlockTokens;
    if (whole) {
      score_tile<Element, kHeads, kBlocks>(q, head_dim, scale, chunk.keys + block, ahead, out);
    } else {
      score_tile<Element, kHeads, 1>(q, head_dim, scale, chunk.keys + block, ahead, out);
    }
    block += count;
  }
}

/// Replaces the scores of one head by exp(score - max), those not visible by 0 (which leaves the chains of the sum as
/// they are); returns maximum and sum.
Softmax exponentials(const Chunk& chunk, float* scores) noexcept {
  const int64_t size = chunk.num_blocks * kBlockTokens;
  for (int64_t t = 0; t < chunk.first; ++t) scores[t] = -__builtin_inff();
  for (int64_t t = chunk.end; t < size; ++t) scores[t] = -__builtin_inff();

  __m256 max8 = _mm256_set1_ps(-__builtin_inff());
  for (int64_t t = 0; t < size; t += 8) max8 = _mm256_max_ps(max8, _mm256_loadu_ps(scores + t));
  __m128 max = _mm_max_ps(_mm256_castps256_ps128(max8), _mm256_extractf128_ps(max8, 1));
  max = _mm_max_ps(max, _mm_movehl_ps(max, max));
  max = _mm_max_ss(max, _mm_movehdup_ps(max));
  const float max_score = _mm_cvtss_f32(max);

  __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
  for (int64_t t = 0; t < size; t += 16) {
    const __m256 p0 = exp_f32(_mm256_sub_ps(_mm256_loadu_ps(scores + t), _mm256_set1_ps(max_score)));
    const __m256 p1 = exp_f32(_mm256_sub_ps(_mm256_loadu_ps(scores + t + 8), _mm256_set1_ps(max_score)));
    _mm256_storeu_ps(scores + t, p0);
    _mm256_storeu_ps(scores + t + 8, p1);
    low = _mm256_add_ps(low, p0);
    high = _mm256_add_ps(high, p1);
  }
  return {max_score, sum_lanes16(low, high)};
}

Join join(Softmax& total, Softmax chunk, bool first_chunk) noexcept {
  if (first_chunk) {
    total = chunk;
    return {true, 0.0f, 1.0f};
  }
  const float max = total.max > chunk.max ? total.max : chunk.max;
  const float old_factor = _mm256_cvtss_f32(exp_f32(_mm256_set1_ps(total.max - max)));
  const float factor = _mm256_cvtss_f32(exp_f32(_mm256_set1_ps(chunk.max - max)));
  total.sum =
      _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(total.sum), _mm_set_ss(old_factor), _mm_set_ss(chunk.sum * factor)));
  total.max = max;
  return {false, old_factor, factor};
}

/// Adds the chunk's part to kHeads x kVecs vectors of the output; the last vector has `width` columns. Each chain runs
/// over the visible tokens in order.
template <class Element, int kHeads, int kVecs>
void value_tile(const Chunk& chunk, int64_t v_head_dim, int64_t column, int64_t width, const float* p,
                const Join* joins, float* out) noexcept {
  __m256 sum[kHeads][kVecs];
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) sum[h][v] = _mm256_setzero_ps();
  }
  const int64_t row_bytes = v_head_dim * Element::kBytes;
  for (int64_t block = 0; block < chunk.num_blocks; ++block) {
    const int64_t begin = block * kBlockTokens;
    const std::byte* values = chunk.values[block] + column * Element::kBytes;
    const int64_t next = block + kValueBlocksAhead;
    const std::byte* ahead =
        (next < chunk.num_blocks ? chunk.values[next] : chunk.following) + column * Element::kBytes;
    const int64_t t_end = at_most(chunk.end - begin, kBlockTokens);
    for (int64_t t = block == 0 ? chunk.first : 0; t < t_end; ++t) {
      __m256 weight[kHeads];
#pragma GCC unroll 4
      for (int h = 0; h < kHeads; ++h) weight[h] = _mm256_broadcast_ss(p + h * kAttentionChunk + begin + t);
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) {
        const int64_t offset = t * row_bytes + v * 8 * Element::kBytes;
        const __m256 row = v < kVecs - 1 ? Element::load(values + offset) : Element::load(values + offset, width);
        if (v * 8 * Element::kBytes % 64 == 0) _mm_prefetch(ahead + offset, _MM_HINT_T0);
#pragma GCC unroll 4
        for (int h = 0; h < kHeads; ++h) sum[h][v] = _mm256_fmadd_ps(weight[h], row, sum[h][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      const __m256i lanes = first_lanes(v < kVecs - 1 ? 8 : width);
      float* o = out + h * v_head_dim + column + v * 8;
      __m256 joined = sum[h][v];
      if (!joins[h].first_chunk) {
        const __m256 scaled = _mm256_mul_ps(joined, _mm256_set1_ps(joins[h].factor));
        joined = _mm256_fmadd_ps(_mm256_maskload_ps(o, lanes), _mm256_set1_ps(joins[h].old_factor), scaled);
      }
      _mm256_maskstore_ps(o, lanes, joined);
    }
  }
}

/// All columns for kHeads heads.
template <class Element, int kHeads>
void value_heads(const Chunk& chunk, int64_t v_head_dim, const float* p, const Join* joins, float* out) noexcept {
  constexpr int kVecs = kTileVecs[kHeads];
  int64_t column = 0;
  for (; column + kVecs * 8 <= v_head_dim; column += kVecs * 8) {
    value_tile<Element, kHeads, kVecs>(chunk, v_head_dim, column, 8, p, joins, out);
  }
  for (; column < v_head_dim; column += 8) {
    value_tile<Element, kHeads, 1>(chunk, v_head_dim, column, at_most(8, v_head_dim - column), p, joins, out);
  }
}

/// Up to kTileHeads heads: scores, exponentials in their place, sums.
template <class Element, int kHeads>
void attend_heads(const AttentionArgs& a, const Chunk& chunk, const float* q, bool first_chunk, Softmax* totals,
                  float* out) noexcept {
  alignas(64) float scores[kHeads * kAttentionChunk];
  Join joins[kHeads];
  score_heads<Element, kHeads>(chunk, q, a.layout.head_dim, a.scale, scores);
  for (int h = 0; h < kHeads; ++h) {
    joins[h] = join(totals[h], exponentials(chunk, scores + h * kAttentionChunk), first_chunk);
  }
  value_heads<Element, kHeads>(chunk, a.layout.v_head_dim, scores, joins, out);
}

/// One chunk for all heads of a pass; what the first tile of heads read, the others find in a cache.
template <class Element>
void attend_chunk(const AttentionArgs& a, const Chunk& chunk, const float* q, int64_t num_heads, bool first_chunk,
                  Softmax* totals, float* out) noexcept {
  const int64_t tiles = (num_heads + kTileHeads - 1) / kTileHeads;
  const int64_t tile = (num_heads + tiles - 1) / tiles;  // 5 heads: 3 and 2, not 4 and 1
  for (int64_t h = 0; h < num_heads; h += tile) {
    const float* tile_q = q + h * a.layout.head_dim;
    float* tile_out = out + h * a.layout.v_head_dim;
    switch (at_most(tile, num_heads - h)) {
      case 1:
        attend_heads<Element, 1>(a, chunk, tile_q, first_chunk, totals + h, tile_out);
        break;
      case 2:
        attend_heads<Element, 2>(a, chunk, tile_q, first_chunk, totals + h, tile_out);
        break;
      case 3:
        attend_heads<Element, 3>(a, chunk, tile_q, first_chunk, totals + h, tile_out);
        break;
      default:
        attend_heads<Element, 4>(a, chunk, tile_q, first_chunk, totals + h, tile_out);
        break;
    }
  }
}

/// Up to kPassHeads query heads of one KV head.
template <class Element>
void attend(const AttentionArgs& a, int64_t row, int64_t kv_head, const float* q, int64_t num_heads,
            float* out) noexcept {
  const int64_t head_dim = a.layout.head_dim, v_head_dim = a.layout.v_head_dim;
  const int64_t head_bytes = (head_dim + v_head_dim) * kBlockTokens * Element::kBytes;
  const int64_t block_bytes = head_bytes * a.layout.kv_heads;
  const int32_t* table = a.block_table + a.table_begin[row];
  const std::byte* slab = a.slab + kv_head * head_bytes;
  const int64_t pos = a.positions[row];
  const int64_t first = a.window > 0 && pos >= a.window ? pos - a.window + 1 : 0;
  Softmax totals[kPassHeads];
  for (int64_t begin = first; begin <= pos;) {
    const int64_t chunk_end = at_most((begin / kAttentionChunk + 1) * kAttentionChunk, pos + 1);
    const int64_t first_block = begin / kBlockTokens;
    Chunk chunk;
    chunk.num_blocks = (chunk_end - 1) / kBlockTokens - first_block + 1;
    chunk.first = begin - first_block * kBlockTokens;
    chunk.end = chunk_end - first_block * kBlockTokens;
    for (int64_t b = 0; b < chunk.num_blocks; ++b) {
      chunk.keys[b] = slab + table[first_block + b] * block_bytes;
      chunk.values[b] = chunk.keys[b] + head_dim * kBlockTokens * Element::kBytes;
    }
    chunk.following = chunk_end <= pos ? slab + table[chunk_end / kBlockTokens] * block_bytes : chunk.values[0];
    attend_chunk<Element>(a, chunk, q, num_heads, begin == first, totals, out);
    begin = chunk_end;
  }
  for (int64_t h = 0; h < num_heads; ++h) {
    float* o = out + h * v_head_dim;
    for (int64_t i = 0; i < v_head_dim; i += 8) {
      const __m256i lanes = first_lanes(v_head_dim - i);
      const __m256 sum = _mm256_maskload_ps(o + i, lanes);
      _mm256_maskstore_ps(o + i, lanes, _mm256_div_ps(sum, _mm256_set1_ps(totals[h].sum)));
    }
  }
}

template <class Element>
void attention(const AttentionArgs& a, RowRange items) noexcept {
  const int64_t group = a.heads / a.layout.kv_heads;
  for (int64_t item = items.begin; item < items.end; ++item) {
    const int64_t row = item / a.layout.kv_heads, kv_head = item % a.layout.kv_heads;
    for (int64_t h = 0; h < group; h += kPassHeads) {
      const int64_t head = row * a.heads + kv_head * group + h;
      attend<Element>(a, row, kv_head, a.q + head * a.layout.head_dim, at_most(kPassHeads, group - h),
                      a.out + head * a.layout.v_head_dim);
    }
  }
}

}  // namespace

void attention_f32(const AttentionArgs& a, RowRange items) noexcept { attention<F32>(a, items); }
void attention_f16(const AttentionArgs& a, RowRange items) noexcept { attention<F16>(a, items); }

}  // namespace headrace::avx2
