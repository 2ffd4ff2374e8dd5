#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace headrace {

/// Which digest of a file the hub names it by.
enum class DigestKind : uint8_t {
  kSha256,  ///< of the bytes: 64 hex digits, for files in Git LFS or Xet
  kGitBlob  ///< Git's SHA-1 of "blob <size>", a zero byte and the bytes: 40 hex digits, for small files
};

/// What kind an ETag is by its form; nullopt for any other, which is no digest.
[[nodiscard]] std::optional<DigestKind> digest_kind(std::string_view etag);

/// Computes a digest piece by piece.
class FileDigest {
 public:
  /// `size`: bytes of the whole file, which a kGitBlob begins with.
  FileDigest(DigestKind kind, int64_t size);
  ~FileDigest();
  FileDigest(FileDigest&&) noexcept;
  FileDigest& operator=(FileDigest&&) noexcept;

  void add(std::string_view piece);
  /// In lower case hex. Ends the computation.
  [[nodiscard]] std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
