// Llama 1 to 3 and the many models of its shape (SmolLM2, Yi, ...). Keys: config.json of meta-llama/Llama-3.1-8B; GGUF
// "llama".
#include "arch/dense_decoder.h"
#include "arch/registry.h"

namespace headrace {
namespace {

ArchSpec arch_llama(const ModelFiles& files) {
  const Metadata& md = files.metadata();
  DenseTraits traits;
  traits.gguf_rope = RopeLayout::kInterleaved;  // the converter reorders the rows of q and k
  const bool attention_bias = md.get_bool("attention_bias").value_or(false);
  traits.qkv_bias = attention_bias || gguf_has_tensor(files, "blk.0.attn_q.bias");
  traits.output_bias = attention_bias || gguf_has_tensor(files, "blk.0.attn_output.bias");
  traits.mlp_bias = md.get_bool("mlp_bias").value_or(false) || gguf_has_tensor(files, "blk.0.ffn_gate.bias");
  return dense_decoder(files, "llama", traits);
}

}  // namespace

HR_ARCH(llama, .hf = {"LlamaForCausalLM"}, .gguf = {"llama"}, .make = arch_llama);

}  // namespace headrace
