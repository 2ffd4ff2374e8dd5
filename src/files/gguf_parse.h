#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "files/metadata.h"
#include "files/tensor_table.h"

namespace headrace {

/// What one GGUF file holds, whether it is a whole model or one file of a split one.
struct GgufContents {
  Metadata metadata;
  TensorTable tensors;  ///< views into the bytes that were parsed
  int version = 0;
};

/// Parses and checks one file. Throws LoadError, see GgufFile.
[[nodiscard]] GgufContents parse_gguf(const std::string& name, std::span<const std::byte> bytes);

}  // namespace headrace
