#include "arch/dense_decoder.h"

#include <cmath>

#include "arch/rope_config.h"
#include "base/error.h"
#include "ops/weight_layout.h"

namespace headrace {
namespace {

constexpr int64_t kMaxSize = 1 << 22;  // of any dimension: far above every known model, far below overflow
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxPositions = 1 << 28;

/// The sizes of the model under both sets of names.
struct Sizes {
  int64_t vocab, hidden, layers, heads, kv_heads, head_dim, v_head_dim, ffn, positions;
  double eps;
  int64_t rotary_dim;
  bool tied;
};

Sizes read_gguf_sizes(const ModelFiles& files) {
  const Metadata& md = files.metadata();
  const std::string p = md.require_string("general.architecture") + ".";
  Sizes s{};
  s.hidden = md.require_int(p + "embedding_length", 1, kMaxSize);
  s.layers = md.require_int(p + "block_count", 1, kMaxLayers);
  s.heads = md.require_int(p + "attention.head_count", 1, kMaxSize);
  s.kv_heads = md.get_int(p + "attention.head_count_kv", 1, kMaxSize).value_or(s.heads);
  s.head_dim = md.get_int(p + "attention.key_length", 1, kMaxSize).value_or(s.hidden / s.heads);
  s.v_head_dim = md.get_int(p + "attention.value_length", 1, kMaxSize).value_or(s.head_dim);
  s.ffn = md.require_int(p + "feed_forward_length", 1, kMaxSize);
  s.positions = md.require_int(p + "context_length", 1, kMaxPositions);
  s.eps = md.require_float(p + "attention.layer_norm_rms_epsilon");
  s.rotary_dim = md.get_int(p + "rope.dimension_count", 1, kMaxSize).value_or(s.head_dim);
  s.tied = files.find("output.weight") == nullptr;
  const TensorView* embedding = files.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    throw LoadError(files.path(), "token_embd.weight: missing or no matrix, expected [vocabulary, embedding_length]");
  }
  s.vocab = embedding->shape[0];
  return s;
}

Sizes read_hf_sizes(const ModelFiles& files) {
  const Metadata& md = files.metadata();
  Sizes s{};
  s.hidden = md.require_int("hidden_size", 1, kMaxSize);
  s.layers = md.require_int("num_hidden_layers", 1, kMaxLayers);
  s.heads = md.require_int("num_attention_heads", 1, kMaxSize);
  s.kv_heads = md.get_int("num_key_value_heads", 1, kMaxSize).value_or(s.heads);
  s.head_dim = md.get_int("head_dim", 1, kMaxSize).value_or(s.hidden / s.heads);
  s.v_head_dim = s.head_dim;
  s.ffn = md.require_int("intermediate_size", 1, kMaxSize);
  s.positions = md.require_int("max_position_embeddings", 1, kMaxPositions);
  s.eps = md.require_float("rms_norm_eps");
  s.rotary_dim = s.head_dim;
  s.tied = md.get_bool("tie_word_embeddings").value_or(false);
  s.vocab = md.require_int("vocab_size", 1, kMaxSize);
  const std::string activation = md.get_string("hidden_act").value_or("silu");
  if (activation != "silu" && activation != "swish") {
    md.fail("hidden_act", cat("is '", printable(activation), "', expected silu"));
  }
  const double partial = md.get_float("partial_rotary_factor").value_or(1.0);
  if (partial != 1.0) md.fail("partial_rotary_factor", cat("is ", partial, ", expected 1 in this architecture"));
  return s;
}

void check_sizes(const Metadata& md, const Sizes& s) {
  const auto fail = [&](const std::string& what) { md.fail("attention", what); };
  if (s.vocab < 1 || s.vocab > kMaxSize) fail(cat("vocabulary of ", s.vocab));
  if (s.heads % s.kv_heads != 0) fail(cat(s.heads, " heads, expected a multiple of the ", s.kv_heads, " KV heads"));
  if (s.head_dim < 1) fail(cat("head size of ", s.hidden, " / ", s.heads, " is 0"));
  if (s.heads * s.head_dim > kMaxSize) fail(cat(s.heads, " heads of ", s.head_dim, " are too large"));
  if (s.rotary_dim > s.head_dim || s.rotary_dim % 2 != 0) {
    fail(cat("rotary size is ", s.rotary_dim, ", expected an even number up to the head size ", s.head_dim));
  }
  if (!(s.eps > 0) || !std::isfinite(s.eps)) fail(cat("norm epsilon is ", s.eps, ", expected above 0"));
}

/// Lists tensors under both names.
class TensorList {
 public:
  explicit TensorList(std::vector<TensorSpec>& out) : out_(out) {}

  void whole(UnitKind unit, const std::string& name, const std::string& hf_name, Shape shape, TensorRole role,
             Shard shard, int64_t shard_unit = 1) {
    out_.push_back({.name = name,
                    .hf_name = hf_name,
                    .shape = std::move(shape),
                    .role = role,
                    .shard = shard,
                    .shard_unit = shard_unit,
                    .unit = unit,
                    .layer = -1});
  }
  void attention(int32_t layer, const std::string& name, const std::string& hf_name, Shape shape, Shard shard,
                 int64_t shard_unit = 1) {
    in_layer(UnitKind::kAttention, layer, name, hf_name, std::move(shape), shard, shard_unit);
  }
  void feed_forward(int32_t layer, const std::string& name, const std::string& hf_name, Shape shape, Shard shard) {
    in_layer(UnitKind::kFeedForward, layer, name, hf_name, std::move(shape), shard, 1);
  }

 private:
  void in_layer(UnitKind unit, int32_t layer, const std::string& name, const std::string& hf_name, Shape shape,
                Shard shard, int64_t shard_unit) {
    const TensorRole role = shape.size() == 1 ? TensorRole::kVector : TensorRole::kMatmul;
    out_.push_back({.name = cat("blk.", layer, ".", name),
                    .hf_name = cat("model.layers.", layer, ".", hf_name),
                    .shape = std::move(shape),
                    .role = role,
                    .shard = shard,
                    .shard_unit = shard_unit,
                    .unit = unit,
                    .layer = layer});
  }

  std::vector<TensorSpec>& out_;
};

void list_layer_tensors(TensorList& list, int32_t i, const Sizes& s, const DenseTraits& traits) {
  const int64_t q = s.heads * s.head_dim;
  const int64_t k = s.kv_heads * s.head_dim;
  const int64_t v = s.kv_heads * s.v_head_dim;
  const int64_t group = s.heads / s.kv_heads;  // query heads stay with their KV head
  list.attention(i, "attn_norm.weight", "input_layernorm.weight", {s.hidden}, Shard::kCopy);
  list.attention(i, "attn_q.weight", "self_attn.q_proj.weight", {q, s.hidden}, Shard::kRows, group * s.head_dim);
  list.attention(i, "attn_k.weight", "self_attn.k_proj.weight", {k, s.hidden}, Shard::kRows, s.head_dim);
  list.attention(i, "attn_v.weight", "self_attn.v_proj.weight", {v, s.hidden}, Shard::kRows, s.v_head_dim);
  list.attention(i, "attn_output.weight", "self_attn.o_proj.weight", {s.hidden, s.heads * s.v_head_dim}, Shard::kRows);
  if (traits.qkv_bias) {
    list.attention(i, "attn_q.bias", "self_attn.q_proj.bias", {q}, Shard::kRows, group * s.head_dim);
    list.attention(i, "attn_k.bias", "self_attn.k_proj.bias", {k}, Shard::kRows, s.head_dim);
    list.attention(i, "attn_v.bias", "self_attn.v_proj.bias", {v}, Shard::kRows, s.v_head_dim);
  }
  if (traits.output_bias) list.attention(i, "attn_output.bias", "self_attn.o_proj.bias", {s.hidden}, Shard::kRows);
  if (traits.qk_norm) {
    list.attention(i, "attn_q_norm.weight", "self_attn.q_norm.weight", {s.head_dim}, Shard::kCopy);
    list.attention(i, "attn_k_norm.weight", "self_attn.k_norm.weight", {s.head_dim}, Shard::kCopy);
  }
  list.feed_forward(i, "ffn_norm.weight", "post_attention_layernorm.weight", {s.hidden}, Shard::kCopy);
  list.feed_forward(i, "ffn_gate.weight", "mlp.gate_proj.weight", {s.ffn, s.hidden}, Shard::kRows);
  list.feed_forward(i, "ffn_up.weight", "mlp.up_proj.weight", {s.ffn, s.hidden}, Shard::kRows);
  list.feed_forward(i, "ffn_down.weight", "mlp.down_proj.weight", {s.hidden, s.ffn}, Shard::kRows);
  if (traits.mlp_bias) {
    list.feed_forward(i, "ffn_gate.bias", "mlp.gate_proj.bias", {s.ffn}, Shard::kRows);
    list.feed_forward(i, "ffn_up.bias", "mlp.up_proj.bias", {s.ffn}, Shard::kRows);
    list.feed_forward(i, "ffn_down.bias", "mlp.down_proj.bias", {s.hidden}, Shard::kRows);
  }
}

}  // namespace

ArchSpec dense_decoder(const ModelFiles& files, std::string_view name, const DenseTraits& traits) {
  const bool gguf = files.format() == ModelFormat::kGguf;
  const Sizes s = gguf ? read_gguf_sizes(files) : read_hf_sizes(files);
  check_sizes(files.metadata(), s);

  ArchSpec spec;
  spec.name = name;
  spec.vocab_size = static_cast<int32_t>(s.vocab);
  spec.hidden = static_cast<int32_t>(s.hidden);
  spec.max_positions = static_cast<int32_t>(s.positions);
  spec.norm_eps = static_cast<float>(s.eps);
  spec.tied_output = s.tied;
  spec.ropes.push_back(read_rope(files, gguf ? traits.gguf_rope : RopeLayout::kHalfSplit,
                                 static_cast<int32_t>(s.rotary_dim), spec.max_positions));

  TensorList list(spec.tensors);
  list.whole(UnitKind::kEmbedding, "token_embd.weight", "model.embed_tokens.weight", {s.vocab, s.hidden},
             TensorRole::kEmbedding, Shard::kFirst, kNeuronGroup);
  for (int32_t i = 0; i < s.layers; ++i) {
    LayerSpec layer;
    layer.attention = {.heads = static_cast<int32_t>(s.heads),
                       .kv_heads = static_cast<int32_t>(s.kv_heads),
                       .head_dim = static_cast<int32_t>(s.head_dim),
                       .v_head_dim = static_cast<int32_t>(s.v_head_dim),
                       .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.head_dim))),
                       .window = traits.windows.empty() ? 0 : traits.windows[static_cast<size_t>(i)],
                       .rope = 0,
                       .qk_norm = traits.qk_norm,
                       .qkv_bias = traits.qkv_bias,
                       .output_bias = traits.output_bias};
    layer.feed_forward = {.hidden = static_cast<int32_t>(s.ffn), .bias = traits.mlp_bias};
    spec.layers.push_back(layer);
    list_layer_tensors(list, i, s, traits);
  }
  list.whole(UnitKind::kOutput, "output_norm.weight", "model.norm.weight", {s.hidden}, TensorRole::kVector,
             Shard::kCopy);
  if (!s.tied) {
    list.whole(UnitKind::kOutput, "output.weight", "lm_head.weight", {s.vocab, s.hidden}, TensorRole::kMatmul,
               Shard::kRows, kNeuronGroup);
  }
  assign_cache_groups(spec);
  return spec;
}

int32_t read_num_layers(const ModelFiles& files) {
  const Metadata& md = files.metadata();
  const std::string key = files.format() == ModelFormat::kGguf
                              ? md.require_string("general.architecture") + ".block_count"
                              : "num_hidden_layers";
  return static_cast<int32_t>(md.require_int(key, 1, kMaxLayers));
}

bool gguf_has_tensor(const ModelFiles& files, std::string_view name) {
  return files.format() == ModelFormat::kGguf && files.find(name) != nullptr;
}

std::vector<int32_t> read_hf_windows(const ModelFiles& files, int32_t first_windowed) {
  const Metadata& md = files.metadata();
  const int32_t layers = read_num_layers(files);
  const auto window = static_cast<int32_t>(md.get_int("sliding_window", 1, kMaxPositions).value_or(0));
  std::vector<int32_t> windows(static_cast<size_t>(layers), 0);
  const auto types = md.get_strings("layer_types");
  if (types && static_cast<int32_t>(types->size()) != layers) {
    md.fail("layer_types", cat("has ", types->size(), " entries, expected one for each of the ", layers, " layers"));
  }
  for (size_t i = 0; i < windows.size(); ++i) {
    bool windowed = static_cast<int32_t>(i) >= first_windowed;
    if (types) {
      const std::string& type = (*types)[i];
      if (type != "sliding_attention" && type != "full_attention") {
        md.fail(cat("layer_types[", i, "]"),
                cat("is '", printable(type), "', expected full_attention or sliding_attention"));
      }
      windowed = type == "sliding_attention";
    }
    windows[i] = windowed ? window : 0;
  }
  return windows;
}

}  // namespace headrace
