// Dense Qwen2 and Qwen2.5: biases on q, k and v. Keys: config.json of Qwen/Qwen2.5-7B-Instruct; GGUF "qwen2".
#include "arch/dense_decoder.h"
#include "arch/qwen_windows.h"
#include "arch/registry.h"

namespace headrace {
namespace {

ArchSpec arch_qwen2(const ModelFiles& files) {
  DenseTraits traits;
  traits.qkv_bias = true;
  traits.windows = read_qwen_windows(files);
  return dense_decoder(files, "qwen2", traits);
}

}  // namespace

HR_ARCH(qwen2, .hf = {"Qwen2ForCausalLM"}, .gguf = {"qwen2"}, .make = arch_qwen2);

}  // namespace headrace
