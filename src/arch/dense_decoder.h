#pragma once

#include "arch/arch_spec.h"
#include "files/model_files.h"

namespace headrace {

/// What an architecture file says of a model of the llama family; the rest comes from the metadata.
struct DenseTraits {
  RopeLayout gguf_rope = RopeLayout::kHalfSplit;  ///< Hugging Face checkpoints are always kHalfSplit
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  std::vector<int32_t> windows;  ///< of each layer (0: full); empty: full everywhere
};

/// A decoder with RMS norms before attention and feed-forward, grouped-query attention with rotary positions, and a
/// gated SiLU feed-forward: sizes read and checked, every tensor listed. `name` becomes the spec's.
[[nodiscard]] ArchSpec dense_decoder(const ModelFiles& files, std::string_view name, const DenseTraits& traits);

/// Layers in the model, for traits that differ by layer.
[[nodiscard]] int32_t read_num_layers(const ModelFiles& files);
/// Whether a bias tensor is there (GGUF files say it by having it).
[[nodiscard]] bool gguf_has_tensor(const ModelFiles& files, std::string_view name);
/// Windows of each layer by config.json: `layer_types` where it is there, else `window` from layer `first_windowed` on.
[[nodiscard]] std::vector<int32_t> read_hf_windows(const ModelFiles& files, int32_t first_windowed);

}  // namespace headrace
