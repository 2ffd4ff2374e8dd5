#include "cluster/part_disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace headrace::cluster {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBlockBytes = 512;  // of st_blocks, whatever the file system's are

Error error_about(const fs::path& path, std::string_view what, int error_number) {
  const bool is_full = error_number == ENOSPC || error_number == EDQUOT;
  return {is_full ? ErrorCode::kOutOfMemory : ErrorCode::kUnavailable,
          cat(printable(path.string()), ": ", what, ": ", system_error_text(error_number))};
}

int64_t blocks_of(const fs::path& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 ? int64_t{status.st_blocks} * kBlockBytes : 0;
}

/// Brings names in a folder to disk.
void sync_folder(const fs::path& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) (void)::fsync(fd.get());
}

/// False where somebody uses the folder.
bool try_remove(const fs::path& folder) {
  const Descriptor used(::open((folder / "used").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (used.get() < 0 || ::flock(used.get(), LOCK_EX | LOCK_NB) != 0) return false;
  std::error_code error;
  fs::remove(folder / "journal", error);
  sync_folder(folder);
  fs::remove_all(folder, error);
  return !error;
}

}  // namespace

int64_t allocated_bytes(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code error;
  // A folder that another process removes meanwhile counts as far as it was seen.
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    bytes += blocks_of(at->path());
  }
  return bytes;
}

bool remove_least_recently_used(const fs::path& folder, const std::string& kept) {
  std::vector<std::pair<fs::file_time_type, fs::path>> candidates;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.path().filename() == kept || !entry.is_directory(ignored)) continue;
    const fs::file_time_type used = fs::last_write_time(entry.path() / "used", ignored);
    candidates.emplace_back(ignored ? fs::file_time_type::min() : used, entry.path());
  }
  std::ranges::sort(candidates);
  return std::ranges::any_of(candidates, [](const auto& candidate) { return try_remove(candidate.second); });
}

Descriptor use_folder(const fs::path& folder) {
  const fs::path path = folder / "used";
  while (true) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw error_about(folder, "cannot be made", error.value());
    Descriptor used(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (used.get() < 0 && errno == ENOENT) continue;  // removed in between
    if (used.get() < 0) throw error_about(path, "cannot be opened", errno);
    if (::flock(used.get(), LOCK_SH) != 0) throw error_about(path, "cannot be locked", errno);
    // Whoever removes the folder holds the lock: the file may be gone by now, and another one in its place.
    struct stat locked = {}, named = {};
    const bool is_same = ::fstat(used.get(), &locked) == 0 && ::stat(path.c_str(), &named) == 0 &&
                         locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
    if (!is_same) continue;
    (void)::futimens(used.get(), nullptr);
    return used;
  }
}

Descriptor open_file(const fs::path& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (file.get() < 0) throw error_about(path, "cannot be opened", errno);
  return file;
}

Result<std::monostate> write_fully(int fd, std::span<const std::byte> bytes, int64_t offset, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = offset < 0 ? ::write(fd, bytes.data(), bytes.size())
                                 : ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return error_about(path, "cannot be written", n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(n));
    if (offset >= 0) offset += n;
  }
  return std::monostate{};
}

void replace_file(const fs::path& path, std::string_view text) {
  const fs::path partial = cat(path.string(), ".", ::getpid());
  {
    const Descriptor file = open_file(partial, O_WRONLY | O_CREAT | O_TRUNC);
    const auto written = write_fully(file.get(), std::as_bytes(std::span(text)), 0, partial);
    if (!written) throw Error(written.error());
    if (::fsync(file.get()) != 0) throw error_about(partial, "cannot be written", errno);
  }
  if (::rename(partial.c_str(), path.c_str()) != 0) throw error_about(path, "cannot be written", errno);
  sync_folder(path.parent_path());
}

}  // namespace headrace::cluster
