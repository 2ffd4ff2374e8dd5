#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "files/mapped_file.h"
#include "files/metadata.h"
#include "files/tensor_table.h"

namespace headrace {

/// A GGUF file, version 2 or 3, little-endian; format: docs/gguf.md of github.com/ggml-org/ggml.
/// Everything is checked when the file is opened: each tensor's bytes lie inside the file and fit type and shape.
/// Throws LoadError naming file and field: kCorrupt, or kUnsupported for version 1, big-endian files and unknown types.
/// Shapes are slowest dimension first, the reverse of the file's order. Move-only.
class GgufFile {
 public:
  /// Opens a file, or all files of a split model given the first ("NAME-00001-of-00003.gguf"): its metadata, the
  /// tensors of all in order.
  [[nodiscard]] static GgufFile open(const std::string& path);
  /// Reads one file, unsplit or a part, from memory that outlives the result; `name` is for messages.
  [[nodiscard]] static GgufFile parse(std::string name, std::span<const std::byte> bytes);

  [[nodiscard]] const Metadata& metadata() const noexcept { return metadata_; }
  [[nodiscard]] const TensorTable& table() const noexcept { return table_; }
  [[nodiscard]] std::span<const NamedTensor> tensors() const noexcept { return table_.all(); }
  [[nodiscard]] const TensorView* find(std::string_view name) const noexcept { return table_.find(name); }
  /// 2 or 3.
  [[nodiscard]] int version() const noexcept { return version_; }
  /// The mapped files, the first being the one given; none for parse().
  [[nodiscard]] std::span<const MappedFile> files() const noexcept { return files_; }
  /// MappedFile::drop_pages of the file that holds `part`.
  void drop_pages(std::span<const std::byte> part) const noexcept;

 private:
  GgufFile() = default;

  Metadata metadata_;
  TensorTable table_;
  std::vector<MappedFile> files_;
  int version_ = 0;
};

}  // namespace headrace
