#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "files/gguf_format.h"
#include "files/metadata.h"
#include "tensor/tensor.h"

namespace headrace {

/// Collects metadata and tensors and writes them as GGUF version 3. It checks what it is given, but no more than the
/// format asks: a test may write files that are well-formed and still no model.
class GgufWriter {
 public:
  /// `alignment`: a power of two, at least 8; other than 32 it is written as general.alignment.
  explicit GgufWriter(uint32_t alignment = kGgufDefaultAlignment);

  /// Adds a pair. `type` is the type in the file; for a list it is that of the elements (kArray for lists of lists,
  /// whose innermost elements take `inner`). Throws Error where the value does not fit the type.
  void add(const std::string& key, GgufType type, const MetaValue& value, GgufType inner = GgufType::kInt32);
  void add_string(const std::string& key, std::string value);
  void add_u32(const std::string& key, uint32_t value);
  void add_f32(const std::string& key, float value);
  void add_bool(const std::string& key, bool value);
  void add_strings(const std::string& key, std::vector<std::string> values);

  /// Adds a tensor; its bytes are borrowed until the file is written. Throws Error where type, shape and bytes disagree
  /// or GGUF has no number for the type.
  void add_tensor(std::string name, const TensorView& view);

  /// The file's bytes.
  [[nodiscard]] std::vector<std::byte> bytes() const;
  /// Writes a file, replacing one that is there only once all is written. Throws Error naming the path.
  void write(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    TensorView view;
  };
  [[nodiscard]] std::vector<std::byte> head() const;

  uint32_t alignment_;
  uint64_t num_pairs_ = 0;
  std::vector<std::byte> pairs_;
  std::vector<Tensor> tensors_;
};

}  // namespace headrace
