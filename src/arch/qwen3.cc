// Dense Qwen3: norms on the heads of q and k. Keys: config.json of Qwen/Qwen3-0.6B; GGUF "qwen3".
#include "arch/dense_decoder.h"
#include "arch/qwen_windows.h"
#include "arch/registry.h"

namespace headrace {
namespace {

ArchSpec arch_qwen3(const ModelFiles& files) {
  DenseTraits traits;
  traits.qk_norm = true;
  const bool bias = files.metadata().get_bool("attention_bias").value_or(false);
  traits.qkv_bias = bias || gguf_has_tensor(files, "blk.0.attn_q.bias");
  traits.output_bias = bias || gguf_has_tensor(files, "blk.0.attn_output.bias");
  traits.windows = read_qwen_windows(files);
  return dense_decoder(files, "qwen3", traits);
}

}  // namespace

HR_ARCH(qwen3, .hf = {"Qwen3ForCausalLM"}, .gguf = {"qwen3"}, .make = arch_qwen3);

}  // namespace headrace
