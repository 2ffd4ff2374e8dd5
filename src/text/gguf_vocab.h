#pragma once

#include "files/metadata.h"
#include "text/tokenizer.h"

namespace headrace {

/// The vocabulary in the metadata of a GGUF file. Throws LoadError naming key and file where a key is missing
/// (tokenizer.ggml.model, tokenizer.ggml.tokens) or has another type than docs/gguf.md of github.com/ggml-org/ggml
/// says.
[[nodiscard]] GgufVocab vocab_from_gguf(const Metadata& metadata);

}  // namespace headrace
