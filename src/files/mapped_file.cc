#include "files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "base/error.h"

namespace headrace {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail_open(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR) throw LoadError(path, "no such file", ErrorCode::kNotFound);
  throw LoadError(path, cat("cannot be read: ", std::strerror(error)), ErrorCode::kInvalidArgument);
}

std::string_view kind_of(mode_t mode) noexcept {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe without a writer would wait for one.
  const FileDescriptor fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) fail_open(path_, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail_open(path_, errno);
  if (!S_ISREG(info.st_mode)) {
    throw LoadError(path_, cat("is ", kind_of(info.st_mode), ", expected a file"), ErrorCode::kInvalidArgument);
  }
  if (info.st_size == 0) return;  // mmap refuses a length of 0
  const auto size = static_cast<size_t>(info.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (start == MAP_FAILED) {
    throw LoadError(path_, cat("cannot be mapped (", size, " bytes): ", std::strerror(errno)),
                    errno == ENOMEM ? ErrorCode::kOutOfMemory : ErrorCode::kInvalidArgument);
  }
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

bool MappedFile::contains(std::span<const std::byte> part) const noexcept {
  const std::less_equal<const std::byte*> le;
  return !part.empty() && !bytes_.empty() && le(bytes_.data(), part.data()) &&
         le(part.data() + part.size(), bytes_.data() + bytes_.size());
}

void MappedFile::drop_pages(std::span<const std::byte> part) const noexcept {
  if (!contains(part)) return;
  // Rounded outwards: a neighbour that shares a page reads it from the file again.
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = static_cast<size_t>(part.data() - bytes_.data()) / page * page;
  const auto end = static_cast<size_t>(part.data() - bytes_.data()) + part.size();
  ::madvise(const_cast<std::byte*>(bytes_.data() + begin), end - begin, MADV_DONTNEED);
}

}  // namespace headrace
