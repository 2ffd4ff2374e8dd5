#include "files/hub/hub_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "files/hub/hub_name.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, std::string_view what, const std::string& why) {
  throw LoadError(path.string(), cat(what, ": ", why, "; set HF_HUB_CACHE to a folder that is writable"),
                  ErrorCode::kInvalidArgument);
}

fs::path folder_name(const std::string& repo) {
  const size_t slash = repo.find('/');
  return cat("models--", repo.substr(0, slash), "--", repo.substr(slash + 1));
}

/// A name of our own beside `path`, to be renamed to it: a reader never sees half of it.
fs::path scratch_name(const fs::path& path) { return path.string() + cat(".", ::getpid(), ".new"); }

}  // namespace

void make_hub_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(folder, "cannot be made", error.message());
}

HubCache::HubCache(fs::path root, const std::string& repo)
    : root_(std::move(root)), model_(root_ / folder_name(repo)), locks_(root_ / ".locks" / folder_name(repo)) {}

std::optional<std::string> HubCache::commit_of(const std::string& revision) const {
  if (is_commit(revision)) {
    std::error_code ignored;
    return fs::is_directory(snapshot(revision), ignored) ? std::optional(revision) : std::nullopt;
  }
  std::string commit;
  std::ifstream(model_ / "refs" / revision) >> commit;
  return is_commit(commit) ? std::optional(commit) : std::nullopt;
}

void HubCache::set_commit(const std::string& revision, const std::string& commit) const {
  if (is_commit(revision) || commit_of(revision) == commit) return;
  const fs::path ref = model_ / "refs" / revision;
  make_hub_folder(ref.parent_path());
  const fs::path scratch = scratch_name(ref);
  std::ofstream out(scratch, std::ios::binary);
  out << commit;
  out.close();
  std::error_code error;
  if (out) fs::rename(scratch, ref, error);
  if (!out || error) {
    std::error_code ignored;
    fs::remove(scratch, ignored);
    fail(ref, "cannot be written", error ? error.message() : "the disk may be full");
  }
}

fs::path HubCache::snapshot(const std::string& commit) const { return model_ / "snapshots" / commit; }

bool HubCache::has_file(const std::string& commit, const std::string& file) const {
  std::error_code ignored;
  return fs::is_regular_file(snapshot(commit) / file, ignored);  // follows the link
}

std::vector<std::string> HubCache::files_of(const std::string& commit) const {
  const fs::path folder = snapshot(commit);
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) files.push_back(at->path().lexically_relative(folder).generic_string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

fs::path HubCache::blob(const std::string& etag) const { return model_ / "blobs" / etag; }
fs::path HubCache::lock_file(const std::string& etag) const { return locks_ / cat(etag, ".lock"); }

void HubCache::link(const std::string& commit, const std::string& file, const std::string& etag) const {
  const fs::path path = snapshot(commit) / file;
  make_hub_folder(path.parent_path());
  const fs::path target = blob(etag).lexically_relative(path.parent_path());  // survives a move of the whole cache
  const fs::path scratch = scratch_name(path);
  std::error_code error;
  fs::remove(scratch, error);
  fs::create_symlink(target, scratch, error);
  if (!error) fs::rename(scratch, path, error);
  if (error) fail(path, "cannot be made a link to its blob", error.message());
}

FileLock::FileLock(const fs::path& path, const std::function<void()>& on_wait) {
  make_hub_folder(path.parent_path());
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(path, "cannot be opened", std::strerror(errno));
  int code = ::flock(fd_, LOCK_EX | LOCK_NB);
  if (code != 0 && errno == EWOULDBLOCK) on_wait();
  while (code != 0 && (errno == EWOULDBLOCK || errno == EINTR)) code = ::flock(fd_, LOCK_EX);
  if (code != 0) {
    const int error = errno;
    ::close(fd_);
    fail(path, "cannot be locked", std::strerror(error));
  }
}

FileLock::~FileLock() { ::close(fd_); }

}  // namespace headrace
