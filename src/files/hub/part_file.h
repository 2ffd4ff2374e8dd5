#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "files/hub/file_digest.h"

namespace headrace {

/// A file that grows to be another's copy, and whose digest grows with it. What is there already counts. Functions
/// throw LoadError, kUnavailable where the disk is full.
class PartFile {
 public:
  /// `etag` and `bytes`: of the whole file. Reads what is there.
  PartFile(std::filesystem::path path, const std::string& etag, int64_t bytes);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  [[nodiscard]] int64_t size() const noexcept { return size_; }
  void append(std::string_view piece);
  /// Begins anew with an empty file.
  void clear();
  /// The digest of all bytes, in hex; nullopt where the ETag is none. Called once, at the end.
  [[nodiscard]] std::optional<std::string> digest();
  /// Forces it to the disk and gives it its name.
  void move_to(const std::filesystem::path& path);
  void remove() noexcept;

 private:
  [[noreturn]] void fail(std::string_view what, int error) const;
  void start_digest();

  std::filesystem::path path_;
  std::optional<DigestKind> kind_;
  int64_t bytes_;
  int64_t size_ = 0;
  std::optional<FileDigest> digest_;
  int fd_ = -1;
};

}  // namespace headrace
