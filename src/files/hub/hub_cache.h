#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace headrace {

/// One model in the cache of the hub's own tools, so that each finds what the other has fetched:
///
///   models--ORG--NAME/refs/main               the commit that the branch was at
///   models--ORG--NAME/snapshots/COMMIT/FILE   a link to the blob
///   models--ORG--NAME/blobs/ETAG              the bytes; ETAG.incomplete while they come
///   .locks/models--ORG--NAME/ETAG.lock        locked by flock(2) while they come
///
/// ETAG is a file's digest, so a part that a broken transfer left is always one of the same bytes. Functions that
/// write throw LoadError, which names the path and how to mend it.
class HubCache {
 public:
  /// `repo`: "ORG/NAME", checked already.
  HubCache(std::filesystem::path root, const std::string& repo);

  /// Of the last fetch, or `revision` itself where it is a commit; nullopt where nothing of it is here.
  [[nodiscard]] std::optional<std::string> commit_of(const std::string& revision) const;
  void set_commit(const std::string& revision, const std::string& commit) const;

  [[nodiscard]] std::filesystem::path snapshot(const std::string& commit) const;
  [[nodiscard]] bool has_file(const std::string& commit, const std::string& file) const;
  /// Paths of the files of a snapshot that are here, with slashes, sorted.
  [[nodiscard]] std::vector<std::string> files_of(const std::string& commit) const;

  [[nodiscard]] std::filesystem::path blob(const std::string& etag) const;
  [[nodiscard]] std::filesystem::path lock_file(const std::string& etag) const;
  /// Makes `file` of a snapshot a link to the blob.
  void link(const std::string& commit, const std::string& file, const std::string& etag) const;

  [[nodiscard]] const std::filesystem::path& root() const noexcept { return root_; }

 private:
  std::filesystem::path root_;
  std::filesystem::path model_;
  std::filesystem::path locks_;
};

/// Makes a folder and those above it. Throws LoadError.
void make_hub_folder(const std::filesystem::path& folder);

/// Holds flock(2) on a file, which is made where it is not there.
class FileLock {
 public:
  /// Waits for whoever holds it; `on_wait` is called once where that takes time. Throws LoadError.
  FileLock(const std::filesystem::path& path, const std::function<void()>& on_wait);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace headrace
