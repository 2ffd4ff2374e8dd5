#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/mapped_file.h"
#include "files/tensor_table.h"

namespace headrace {

/// The contents of one .safetensors file; format: huggingface.co/docs/safetensors. Tensors are in the order of
/// their bytes. All is checked: bytes inside the file, of the size of type and shape, without overlap or duplicate.
/// U16, U32, U64, C64 and other types that no model of ours has are kUnsupported and named.
struct SafetensorsContents {
  TensorTable tensors;
  std::map<std::string, std::string> metadata;  ///< "__metadata__"
};
/// Throws LoadError naming file and tensor. The views point into `bytes`; `name` is for messages.
[[nodiscard]] SafetensorsContents parse_safetensors(const std::string& name, std::span<const std::byte> bytes);

/// One .safetensors file, or all shards of a model listed in an index. Move-only.
class SafetensorsModel {
 public:
  /// A single file.
  [[nodiscard]] static SafetensorsModel open(const std::string& path);
  /// The shards of "model.safetensors.index.json". Throws LoadError where a shard is missing, lies outside the index's
  /// folder, or lacks a tensor that the index puts there. Tensors that the index does not list are left out.
  [[nodiscard]] static SafetensorsModel open_index(const std::string& index_path);

  [[nodiscard]] const TensorTable& table() const noexcept { return table_; }
  [[nodiscard]] std::span<const NamedTensor> tensors() const noexcept { return table_.all(); }
  [[nodiscard]] const TensorView* find(std::string_view name) const noexcept { return table_.find(name); }
  /// "__metadata__" of the (first) file.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  [[nodiscard]] std::span<const MappedFile> files() const noexcept { return files_; }
  /// MappedFile::drop_pages of the file that holds `part`.
  void drop_pages(std::span<const std::byte> part) const noexcept;

 private:
  SafetensorsModel() = default;

  TensorTable table_;
  std::map<std::string, std::string> metadata_;
  std::vector<MappedFile> files_;
};

/// shard file name -> names of its tensors, from the text of an index; for open_index and the fuzzer.
[[nodiscard]] std::map<std::string, std::vector<std::string>> parse_safetensors_index(const std::string& name,
                                                                                      std::string_view text);

}  // namespace headrace
