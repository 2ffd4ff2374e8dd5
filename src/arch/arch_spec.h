#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/kv_layout.h"
#include "ops/rope.h"
#include "tensor/tensor.h"

namespace headrace {

/// How a tensor is split over the ranks of a stage. Sums over inputs are never divided: whole neurons give the bits of
/// one rank, and blocks of quantised weights, which lie along the inputs, stay whole.
enum class Shard : uint8_t {
  kCopy,   ///< every rank has all of it
  kRows,   ///< output neurons (the first dimension) are divided
  kFirst,  ///< rank 0 alone has it, and looks up embeddings for all; of a tied output projection others have their rows
};

/// What a tensor is used as, and so how it is kept in memory.
enum class TensorRole : uint8_t {
  kVector,     ///< norm weights, biases: widened to f32
  kMatmul,     ///< packed by the recipe of its type
  kEmbedding,  ///< rows are looked up; packed as kMatmul where the output projection is tied to it
};

/// Units of placement in the order of the forward pass: embedding, of each layer its attention and its feed-forward
/// (with the norm before it), output (final norm and projection).
enum class UnitKind : uint8_t { kEmbedding, kAttention, kFeedForward, kOutput };

/// One tensor of an architecture. Shapes are row-major: [output neurons, inputs].
struct TensorSpec {
  std::string name;     ///< ours and GGUF's: "blk.3.attn_q.weight"
  std::string hf_name;  ///< in Hugging Face checkpoints
  Shape shape;
  TensorRole role = TensorRole::kMatmul;
  Shard shard = Shard::kCopy;
  int64_t shard_unit = 1;  ///< rows that stay together (of a head)
  UnitKind unit = UnitKind::kAttention;
  int32_t layer = -1;  ///< of kAttention and kFeedForward
};

/// Elements [begin, end) of a dimension.
struct ShardRange {
  int64_t begin, end;
  [[nodiscard]] int64_t size() const noexcept { return end - begin; }
};
/// What `rank` of `ranks` has of `size` elements of which `unit` stay together (the last unit may be short).
[[nodiscard]] ShardRange split_evenly(int64_t size, int64_t unit, int32_t rank, int32_t ranks) noexcept;
/// Rows (of the first dimension) of a tensor that `rank` of `ranks` holds; all of them for kCopy.
[[nodiscard]] ShardRange shard_range(const TensorSpec& tensor, int32_t rank, int32_t ranks) noexcept;

/// Rotary positions, ready to use: every scaling rule has already been worked into the frequencies.
struct RopeSpec {
  RopeLayout layout = RopeLayout::kHalfSplit;
  std::vector<float> inv_freq;  ///< one for each rotated pair
  float scale = 1.0f;           ///< of cos and sin (YaRN's attention factor)
  bool operator==(const RopeSpec&) const = default;
};

/// Grouped-query attention of one layer.
struct AttentionSpec {
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t v_head_dim = 0;
  float scale = 1.0f;
  int32_t window = 0;    ///< positions that a token sees, itself included; 0: all
  int32_t rope = 0;      ///< index into ArchSpec::ropes
  bool qk_norm = false;  ///< RMS norm over each head of q and k before the rotation
  bool qkv_bias = false;
  bool output_bias = false;
};

/// Gated feed-forward: down(silu(gate x) * up x).
struct FeedForwardSpec {
  int32_t hidden = 0;
  bool bias = false;
};

struct LayerSpec {
  AttentionSpec attention;
  FeedForwardSpec feed_forward;
  int32_t cache_group = 0;  ///< index into ArchSpec::cache_groups
};

/// Layers whose caches are of one kind: they share block ids and tables.
struct CacheGroupSpec {
  int32_t window = 0;  ///< 0: full
  std::vector<int32_t> layers;
};

/// What an architecture is, as data: the one decoder (model/) runs any of these.
struct ArchSpec {
  std::string name;  ///< the file in arch/: "qwen3"
  int32_t vocab_size = 0;
  int32_t hidden = 0;
  int32_t max_positions = 0;
  float norm_eps = 0;
  bool tied_output = false;
  std::vector<RopeSpec> ropes;
  std::vector<CacheGroupSpec> cache_groups;
  std::vector<LayerSpec> layers;
  std::vector<TensorSpec> tensors;

  [[nodiscard]] int32_t num_layers() const noexcept { return static_cast<int32_t>(layers.size()); }
  /// The tensor of that name (ours); nullptr where the architecture has none.
  [[nodiscard]] const TensorSpec* find_tensor(std::string_view tensor_name) const noexcept;
};

/// Bytes of keys and values that one token takes in a cache group, in a cache of `kv_dtype`.
[[nodiscard]] int64_t kv_bytes_per_token(const ArchSpec& spec, const CacheGroupSpec& group, DType kv_dtype) noexcept;

/// Throws Error(kUnsupported), which names both numbers, where the layers cannot be divided over `ranks`: each has the
/// same number of KV heads, and of every divided tensor some rows.
void check_ranks(const ArchSpec& spec, int32_t ranks);

/// Groups the layers by the window of their attention and sets their cache_group.
void assign_cache_groups(ArchSpec& spec);

}  // namespace headrace
