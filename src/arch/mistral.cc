// Mistral 7B and later: llama with a sliding window. Keys: config.json of mistralai/Mistral-7B-v0.1. GGUF files are
// named "llama" and say the window where there is one.
#include "arch/dense_decoder.h"
#include "arch/registry.h"
#include "base/cat.h"

namespace headrace {
namespace {

constexpr std::string_view kGgufWindow = "llama.attention.sliding_window";

bool claims_gguf(const Metadata& md) { return md.has(kGgufWindow); }

ArchSpec arch_mistral(const ModelFiles& files) {
  DenseTraits traits;
  traits.gguf_rope = RopeLayout::kInterleaved;
  if (files.format() == ModelFormat::kGguf) {
    const auto window = static_cast<int32_t>(files.metadata().require_int(kGgufWindow, 0, 1 << 28));
    traits.windows.assign(static_cast<size_t>(read_num_layers(files)), window);
  } else {
    traits.windows = read_hf_windows(files, 0);
  }
  return dense_decoder(files, "mistral", traits);
}

}  // namespace

HR_ARCH(mistral, .hf = {"MistralForCausalLM"}, .gguf = {"llama"}, .make = arch_mistral, .claims_gguf = claims_gguf);

}  // namespace headrace
