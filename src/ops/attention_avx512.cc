#include "ops/attention.h"
#include "ops/vector_math_avx512.h"

namespace headrace::avx512 {
namespace {

// All query heads of a KV head go through the context together, so that its keys and values are read once. In registers
// a tile of up to kTileHeads of them shares each loaded vector.
constexpr int64_t kTileHeads = 4;
constexpr int64_t kTileBlocks = 4;  // 4 heads x 4 blocks = 16 chains in flight, of 32 registers
constexpr int64_t kScoreHeads = 8;  // 8 heads x 512 scores = 16 KiB of stack
constexpr int64_t kPassHeads = 64;  // heads that read the context together; bigger groups take several passes
constexpr int64_t kValueBlocksAhead = 2;
constexpr int64_t kChunkBlocks = kAttentionChunk / kBlockTokens;

struct F32 {
  static constexpr int64_t kBytes = 4;
  static __m512 load(const std::byte* p) noexcept { return _mm512_loadu_ps(p); }
  static __m512 load(const std::byte* p, __mmask16 lanes) noexcept { return _mm512_maskz_loadu_ps(lanes, p); }
};
struct F16 {
  static constexpr int64_t kBytes = 2;
  static __m512 load(const std::byte* p) noexcept {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static __m512 load(const std::byte* p, __mmask16 lanes) noexcept {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, p));
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
  __m512 dot[kHeads][kBlocks];
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) dot[h][b] = _mm512_setzero_ps();
  }
  for (int64_t i = 0; i < head_dim; ++i) {
    const int64_t offset = i * kBlockTokens * Element::kBytes;
    __m512 k[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      k[b] = Element::load(keys[b] + offset);
      _mm_prefetch(ahead[b] + offset, _MM_HINT_T0);
    }
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
      const __m512 component = _mm512_set1_ps(q[h * head_dim + i]);
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) dot[h][b] = _mm512_fmadd_ps(component, k[b], dot[h][b]);
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) {
      _mm512_storeu_ps(scores + h * kAttentionChunk + b * kBlockTokens,
                       _mm512_mul_ps(_mm512_set1_ps(scale), dot[h][b]));
    }
  }
}

template <class Element, int kBlocks>
void score_heads(const float* q, int64_t num_heads, int64_t head_dim, float scale, const std::byte* const* keys,
                 const std::byte* const* ahead, float* scores) noexcept {
  switch (num_heads) {
    case 1:
      return score_tile<Element, 1, kBlocks>(q, head_dim, scale, keys, ahead, scores);
    case 2:
      return score_tile<Element, 2, kBlocks>(q, head_dim, scale, keys, ahead, scores);
    case 3:
      return score_tile<Element, 3, kBlocks>(q, head_dim, scale, keys, ahead, scores);
    default:
      return score_tile<Element, 4, kBlocks>(q, head_dim, scale, keys, ahead, scores);
  }
}

/// Scores of up to kScoreHeads heads against the whole chunk; those outside the visible part are meaningless.
template <class Element>
void score_chunk(const Chunk& chunk, const float* q, int64_t num_heads, int64_t tile, int64_t head_dim, float scale,
                 float* scores) noexcept {
  for (int64_t block = 0; block < chunk.num_blocks;) {
    const bool whole = chunk.num_blocks - block >= kTileBlocks;
    const int64_t count = whole ? kTileBlocks : 1;
    const std::byte* ahead[kTileBlocks];
    for (int64_t b = 0; b < count; ++b) {  // after the keys come the values
      const int64_t next = block + count + b;
      ahead[b] = next < chunk.num_blocks ? chunk.keys[next] : chunk.values[next - chunk.num_blocks];
    }
    for (int64_t h = 0; h < num_heads; h += tile) {
      const int64_t heads = at_most(tile, num_heads - h);
      float* out = scores + h * kAttentionChunk + block * kBlockTokens;
      if (whole) {
        score_heads<Element, kTileBlocks>(q + h * head_dim, heads, head_dim, scale, chunk.keys + block, ahead, out);
      } else {
        score_heads<Element, 1>(q + h * head_dim, heads, head_dim, scale, chunk.keys + block, ahead, out);
      }
    }
    block += count;
  }
}

/// Replaces the scores of one head by exp(score - max), those not visible by 0 (which leaves the chains of the sum as
/// they are); returns maximum and sum.
Softmax exponentials(const Chunk& chunk, float* scores) noexcept {
  const __m512 none = _mm512_set1_ps(-__builtin_inff());
  float* last = scores + (chunk.num_blocks - 1) * kBlockTokens;
  const __mmask16 before = first_lanes(chunk.first);
  const auto after = static_cast<__mmask16>(~first_lanes(chunk.end - (chunk.num_blocks - 1) * kBlockTokens));
  _mm512_mask_storeu_ps(scores, before, none);
  _mm512_mask_storeu_ps(last, after, none);

  __m512 max = none;
  for (int64_t b = 0; b < chunk.num_blocks; ++b) max = _mm512_max_ps(max, _mm512_loadu_ps(scores + b * kBlockTokens));
  const float max_score = _mm512_reduce_max_ps(max);

  __m512 chains = _mm512_setzero_ps();
  for (int64_t b = 0; b < chunk.num_blocks; ++b) {
    const __m512 p = exp_f32(_mm512_sub_ps(_mm512_loadu_ps(scores + b * kBlockTokens), _mm512_set1_ps(max_score)));
    _mm512_storeu_ps(scores + b * kBlockTokens, p);
    chains = _mm512_add_ps(chains, p);
  }
  return {max_score, sum_lanes16(chains)};
}

Join join(Softmax& total, Softmax chunk, bool first_chunk) noexcept {
  if (first_chunk) {
    total = chunk;
    return {true, 0.0f, 1.0f};
  }
  const float max = total.max > chunk.max ? total.max : chunk.max;
  const float old_factor = _mm512_cvtss_f32(exp_f32(_mm512_set1_ps(total.max - max)));
  const float factor = _mm512_cvtss_f32(exp_f32(_mm512_set1_ps(chunk.max - max)));
  total.sum =
      _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(total.sum), _mm_set_ss(old_factor), _mm_set_ss(chunk.sum * factor)));
  total.max = max;
  return {false, old_factor, factor};
}

/// Adds the chunk's part to kHeads x kVecs vectors of the output; `lanes` are those of the last vector. Each chain runs
/// over the visible tokens in order.
template <class Element, int kHeads, int kVecs>
void value_tile(const Chunk& chunk, int64_t v_head_dim, int64_t column, __mmask16 lanes, const float* p,
                const Join* joins, float* out) noexcept {
  __m512 sum[kHeads][kVecs];
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) sum[h][v] = _mm512_setzero_ps();
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
      __m512 row[kVecs];
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) {
        const int64_t offset = t * row_bytes + v * 16 * Element::kBytes;
        row[v] = v < kVecs - 1 ? Element::load(values + offset) : Element::load(values + offset, lanes);
        if (v * 16 * Element::kBytes % 64 == 0) _mm_prefetch(ahead + offset, _MM_HINT_T0);
      }
#pragma GCC unroll 4
      for (int h = 0; h < kHeads; ++h) {
        const __m512 weight = _mm512_set1_ps(p[h * kAttentionChunk + begin + t]);
#pragma GCC unroll 8
        for (int v = 0; v < kVecs; ++v) sum[h][v] = _mm512_fmadd_ps(weight, row[v], sum[h][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      const __mmask16 stored = v < kVecs - 1 ? static_cast<__mmask16>(0xffff) : lanes;
      float* o = out + h * v_head_dim + column + v * 16;
      __m512 joined = sum[h][v];
      if (!joins[h].first_chunk) {
        const __m512 scaled = _mm512_mul_ps(joined, _mm512_set1_ps(joins[h].factor));
        joined = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(stored, o), _mm512_set1_ps(joins[h].old_factor), scaled);
      }
      _mm512_mask_storeu_ps(o, stored, joined);
    }
  }
}

/// All columns for kHeads heads.
template <class Element, int kHeads>
void value_heads(const Chunk& chunk, int64_t v_head_dim, const float* p, const Join* joins, float* out) noexcept {
  constexpr int kVecs = kHeads <= 2 ? 8 : 4;  // at most 16 chains in flight
  int64_t column = 0;
  for (; column + kVecs * 16 <= v_head_dim; column += kVecs * 16) {
    value_tile<Element, kHeads, kVecs>(chunk, v_head_dim, column, 0xffff, p, joins, out);
  }
  if constexpr (kVecs == 8) {
    if (column + 64 <= v_head_dim) {
      value_tile<Element, kHeads, 4>(chunk, v_head_dim, column, 0xffff, p, joins, out);
      column += 64;
    }
  }
  const int64_t rest = v_head_dim - column;
  const __mmask16 lanes = first_lanes(rest - (rest - 1) / 16 * 16);
  switch ((rest + 15) / 16) {
    case 4:
      return value_tile<Element, kHeads, 4>(chunk, v_head_dim, column, lanes, p, joins, out);
    case 3:
      return value_tile<Element, kHeads, 3>(chunk, v_head_dim, column, lanes, p, joins, out);
    case 2:
      return value_tile<Element, kHeads, 2>(chunk, v_head_dim, column, lanes, p, joins, out);
    case 1:
      return value_tile<Element, kHeads, 1>(chunk, v_head_dim, column, lanes, p, joins, out);
    default:
      return;
  }
}

/// One chunk for up to kScoreHeads heads: q, out and totals begin at the first of them.
template <class Element>
void attend_chunk(const AttentionArgs& a, const Chunk& chunk, const float* q, int64_t num_heads, bool first_chunk,
                  Softmax* totals, float* out) noexcept {
  alignas(64) float scores[kScoreHeads * kAttentionChunk];
  Join joins[kScoreHeads];
  const int64_t tiles = (num_heads + kTileHeads - 1) / kTileHeads;
  const int64_t tile = (num_heads + tiles - 1) / tiles;  // 5 heads: 3 and 2, not 4 and 1
  score_chunk<Element>(chunk, q, num_heads, tile, a.layout.head_dim, a.scale, scores);
  for (int64_t h = 0; h < num_heads; ++h) {
    joins[h] = join(totals[h], exponentials(chunk, scores + h * kAttentionChunk), first_chunk);
  }
  const int64_t v_head_dim = a.layout.v_head_dim;
  for (int64_t h = 0; h < num_heads; h += tile) {
    const float* p = scores + h * kAttentionChunk;
    float* o = out + h * v_head_dim;
    switch (at_most(tile, num_heads - h)) {
      case 1:
        value_heads<Element, 1>(chunk, v_head_dim, p, joins + h, o);
        break;
      case 2:
        value_heads<Element, 2>(chunk, v_head_dim, p, joins + h, o);
        break;
      case 3:
        value_heads<Element, 3>(chunk, v_head_dim, p, joins + h, o);
        break;
      default:
        value_heads<Element, 4>(chunk, v_head_dim, p, joins + h, o);
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
    for (int64_t h = 0; h < num_heads; h += kScoreHeads) {
      attend_chunk<Element>(a, chunk, q + h * head_dim, at_most(kScoreHeads, num_heads - h), begin == first, totals + h,
                            out + h * v_head_dim);
    }
    begin = chunk_end;
  }
  for (int64_t h = 0; h < num_heads; ++h) {
    float* o = out + h * v_head_dim;
    for (int64_t i = 0; i < v_head_dim; i += 16) {
      const __mmask16 lanes = first_lanes(v_head_dim - i);
      const __m512 sum = _mm512_maskz_loadu_ps(lanes, o + i);
      _mm512_mask_storeu_ps(o + i, lanes, _mm512_div_ps(sum, _mm512_set1_ps(totals[h].sum)));
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

}  // namespace headrace::avx512
