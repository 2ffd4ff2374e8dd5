#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace headrace {

/// A regular file mapped read-only. Move-only; the mapping's addresses survive a move. An empty file gives no bytes.
/// The file must not be shortened while it is mapped: touching what is gone raises SIGBUS, as with every mapping.
class MappedFile {
 public:
  /// Throws LoadError: kNotFound where there is no file, kInvalidArgument for a folder, pipe or device or a file that
  /// may not be read.
  explicit MappedFile(std::string path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool contains(std::span<const std::byte> part) const noexcept;

  /// Lets go of the resident pages that hold `part` (of bytes()), so that weights packed elsewhere do not keep the file
  /// in memory. The bytes stay readable: a later access reads them from the file again.
  void drop_pages(std::span<const std::byte> part) const noexcept;

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace headrace
