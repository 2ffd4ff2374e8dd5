#include "files/hub/file_digest.h"

#include <openssl/evp.h>

#include <array>

#include "base/ascii_text.h"
#include "base/error.h"

namespace headrace {

struct FileDigest::State {
  struct Deleter {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Deleter> context{EVP_MD_CTX_new()};
};

std::optional<DigestKind> digest_kind(std::string_view etag) {
  if (etag.find_first_not_of("0123456789abcdef") != etag.npos) return std::nullopt;
  if (etag.size() == 64) return DigestKind::kSha256;
  if (etag.size() == 40) return DigestKind::kGitBlob;
  return std::nullopt;
}

FileDigest::FileDigest(DigestKind kind, int64_t size) : state_(std::make_unique<State>()) {
  const EVP_MD* algorithm = kind == DigestKind::kSha256 ? EVP_sha256() : EVP_sha1();
  if (!state_->context || EVP_DigestInit_ex(state_->context.get(), algorithm, nullptr) != 1) {
    throw Error(ErrorCode::kUnsupported,
                cat("libcrypto does not compute ", kind == DigestKind::kSha256 ? "SHA-256" : "SHA-1", " here"));
  }
  if (kind == DigestKind::kGitBlob) add(cat("blob ", size, std::string_view("\0", 1)));
}

FileDigest::~FileDigest() = default;
FileDigest::FileDigest(FileDigest&&) noexcept = default;
FileDigest& FileDigest::operator=(FileDigest&&) noexcept = default;

void FileDigest::add(std::string_view piece) {
  HR_CHECK(EVP_DigestUpdate(state_->context.get(), piece.data(), piece.size()) == 1, "EVP_DigestUpdate");
}

std::string FileDigest::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  HR_CHECK(EVP_DigestFinal_ex(state_->context.get(), bytes.data(), &size) == 1, "EVP_DigestFinal_ex");
  return hex_text(std::span(bytes).first(size));
}

}  // namespace headrace
