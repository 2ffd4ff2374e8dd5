#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "cluster/model_manifest.h"
#include "cluster/tcp_socket.h"

namespace headrace::cluster {

/// The parts of one model that a worker has been sent, on disk, so that open_model opens them as if all were there:
///   <folder>/<hash>/manifest.json    what the files must hold
///   <folder>/<hash>/journal          the ranges that are complete (part_journal.h)
///   <folder>/<hash>/used             locked (flock) by those who use the model; its time says when it was last used
///   <folder>/<hash>/model/NAME       the model's files, of their full size, with holes
/// A range is on disk before the journal says so: whoever is killed, or whatever loses power, at any moment loses only
/// ranges of which no later start believes that they are there. Several processes may use a folder at once.
/// Threading: one thread.
class PartStore {
 public:
  /// `max_bytes`: allocated on disk for all models together; parts of models that nobody uses give way, the least
  /// recently used first. 0: no limit. Throws Error where the folder cannot be made or written.
  PartStore(const std::filesystem::path& folder, ModelManifest manifest, int64_t max_bytes);

  /// What was kept of a model at an earlier start; nullopt where there is nothing, or nothing that makes sense.
  [[nodiscard]] static std::optional<ModelManifest> kept_manifest(const std::filesystem::path& folder,
                                                                  const std::string& hash);

  [[nodiscard]] const ModelManifest& manifest() const noexcept { return manifest_; }
  /// Ranges that these units need and that are not there, in the order of the files.
  [[nodiscard]] std::vector<uint32_t> missing(const StageUnits& units) const;
  [[nodiscard]] int64_t missing_bytes(const StageUnits& units) const;
  /// Keeps a range. kCorrupt, and nothing is kept, where there is no such range or the bytes are not those of the
  /// manifest; kOutOfMemory where the disk or its limit is full.
  [[nodiscard]] Result<std::monostate> write(uint32_t range, std::span<const std::byte> bytes);
  /// Brings what was written to disk, and then into the journal. Called by write() from time to time.
  [[nodiscard]] Result<std::monostate> flush();

  [[nodiscard]] bool complete_for(const StageUnits& units) const { return missing(units).empty(); }
  /// What open_model takes: never while a range of these units is missing (kUnavailable). Flushes.
  [[nodiscard]] Result<std::string> model_path(const StageUnits& units);
  /// Reads the ranges of these units again and forgets those whose bytes have changed, so that they are missing; how
  /// many they are.
  [[nodiscard]] Result<int64_t> forget_damaged(const StageUnits& units);

 private:
  void create(const std::string& hash);
  void open_files();
  [[nodiscard]] Result<std::monostate> make_room(int64_t bytes);
  [[nodiscard]] Result<std::monostate> append(std::span<const std::byte> records);

  std::filesystem::path folder_;  // of all models
  std::filesystem::path own_;
  ModelManifest manifest_;
  int64_t max_bytes_;
  Descriptor used_, journal_;
  std::vector<Descriptor> files_;
  std::vector<bool> complete_;       // written; in the journal but for unflushed_
  std::vector<uint32_t> unflushed_;  // ranges
  int64_t unflushed_bytes_ = 0;
  int64_t allocated_bytes_ = 0;  // in folder_, as of the last count, and what was written since
};

}  // namespace headrace::cluster
