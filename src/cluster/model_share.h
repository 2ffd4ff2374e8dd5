#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arch/arch_spec.h"
#include "base/error.h"
#include "cluster/model_manifest.h"
#include "files/mapped_file.h"
#include "files/model_files.h"

namespace headrace::cluster {

/// The files of a model, for machines that have none of them: what they hold, and their bytes. Threading: bytes() from
/// any thread.
class ModelShare {
 public:
  /// Share of the digests that is done, 0 to 1.
  using Progress = std::function<void(double)>;

  /// Makes the digests, which reads all tensors once. With a `cache` folder (base/cache_folder.h) they are kept there,
  /// and taken from there as long as the files have the same path, size, time and inode. Throws LoadError for a model
  /// whose files lie in more than one folder.
  ModelShare(const ModelFiles& files, const ArchSpec& spec, const std::optional<std::filesystem::path>& cache,
             const Progress& progress);

  [[nodiscard]] const ModelManifest& manifest() const noexcept { return manifest_; }
  [[nodiscard]] const std::string& hash() const noexcept { return hash_; }
  /// Of manifest().ranges[range]; empty where there is no such range. Valid as long as this.
  [[nodiscard]] std::span<const std::byte> bytes(size_t range) const noexcept;
  /// MappedFile::drop_pages of a range that was sent.
  void drop_pages(size_t range) const noexcept;

 private:
  std::vector<MappedFile> files_;  // of the manifest
  ModelManifest manifest_;
  std::string hash_;
};

/// Whether a worker's own copy of a model is the head's: `argument` (as open_model takes it), or in one line why it is
/// not used. Reads all of the copy the first time.
[[nodiscard]] Result<std::string> local_copy(const std::string& argument, const std::string& hash,
                                             const std::optional<std::filesystem::path>& cache,
                                             const ModelShare::Progress& progress);

}  // namespace headrace::cluster
