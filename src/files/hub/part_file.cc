#include "files/hub/part_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"

namespace headrace {

PartFile::PartFile(std::filesystem::path path, const std::string& etag, int64_t bytes)
    : path_(std::move(path)), kind_(digest_kind(etag)), bytes_(bytes) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("cannot be opened", errno);
  start_digest();
  std::vector<char> buffer(1 << 20);
  for (;;) {
    const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      ::close(fd_);
      fail("cannot be read", error);
    }
    if (n == 0) break;
    size_ += n;
    if (size_ > bytes_) break;
    if (digest_) digest_->add({buffer.data(), static_cast<size_t>(n)});
  }
  if (size_ > bytes_) clear();
}

PartFile::~PartFile() { ::close(fd_); }

void PartFile::start_digest() {
  if (kind_) digest_.emplace(*kind_, bytes_);
}

void PartFile::fail(std::string_view what, int error) const {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  throw LoadError(path_.string(),
                  cat(what, ": ", std::strerror(error), "; ",
                      is_full ? "free some space or set HF_HUB_CACHE to a folder on a larger disk, and run it again"
                              : "set HF_HUB_CACHE to a folder that is writable"),
                  is_full ? ErrorCode::kUnavailable : ErrorCode::kInvalidArgument);
}

void PartFile::append(std::string_view piece) {
  if (digest_) digest_->add(piece);
  while (!piece.empty()) {
    const ssize_t n = ::write(fd_, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot be written", errno);
    piece.remove_prefix(static_cast<size_t>(n));
    size_ += n;
  }
}

void PartFile::clear() {
  if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) fail("cannot be emptied", errno);
  size_ = 0;
  start_digest();
}

std::optional<std::string> PartFile::digest() { return digest_ ? std::optional(digest_->hex()) : std::nullopt; }

void PartFile::move_to(const std::filesystem::path& path) {
  if (::fdatasync(fd_) != 0) fail("cannot be written", errno);
  std::error_code error;
  std::filesystem::rename(path_, path, error);
  if (error) fail("cannot be renamed", error.value());
}

void PartFile::remove() noexcept {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace headrace
