#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/stage_units.h"

namespace headrace::cluster {

/// Bytes of a range at most: a range is sent, checked and kept as a whole.
inline constexpr int64_t kMaxRangeBytes = int64_t{8} << 20;

/// Which stages need a range of a model's files.
enum class RangeUnit : uint8_t {
  kHeader,  ///< all: what comes before the tensors, whole small files, tensors that are no unit's
  kEmbedding,
  kAttention,
  kFeedForward,
  kOutput,
};

struct ManifestFile {
  std::string name;  ///< without a folder
  int64_t bytes = 0;
  bool operator==(const ManifestFile&) const = default;
};

/// Part of a file, with what it must hold.
struct ManifestRange {
  uint32_t file = 0;  ///< index into the manifest's files
  int64_t offset = 0;
  int64_t bytes = 0;    ///< 1 to kMaxRangeBytes
  uint64_t digest = 0;  ///< XXH3, 64 bits
  RangeUnit unit = RangeUnit::kHeader;
  int32_t layer = -1;  ///< of kAttention and kFeedForward
  bool operator==(const ManifestRange&) const = default;
};

/// What a model's files hold, for machines that have them only in part. Bytes outside all ranges are needed by no
/// stage. Invariant of one that was parsed: file names are plain and differ, ranges lie inside their files, ascend, and
/// do not overlap.
struct ModelManifest {
  std::string entry;  ///< the file that open_model takes; empty: the folder
  bool tied_output = false;
  int32_t num_layers = 0;
  std::vector<ManifestFile> files;
  std::vector<ManifestRange> ranges;  ///< by file and offset

  [[nodiscard]] bool needs(const StageUnits& units, const ManifestRange& range) const noexcept;
  /// 32 hexadecimal digits (XXH3, 128 bits) over all of it: the same model has the same wherever it lies.
  [[nodiscard]] std::string hash() const;
  bool operator==(const ModelManifest&) const = default;
};

[[nodiscard]] std::string manifest_json(const ModelManifest& manifest);
/// Throws Error(kCorrupt), one line, for a text that is no manifest or breaks its invariant.
[[nodiscard]] ModelManifest parse_manifest(std::string_view text);

/// XXH3 of 64 bits, as digests are.
[[nodiscard]] uint64_t digest_of(std::span<const std::byte> bytes) noexcept;

}  // namespace headrace::cluster
