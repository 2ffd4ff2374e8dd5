#include "cluster/model_manifest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "base/byte_reader.h"
#include "base/error.h"
#include "cluster/message_fields.h"
#include "files/json_file.h"

namespace headrace::cluster {
namespace {

constexpr int64_t kVersion = 2;
// Bounds: 2 TB in ranges of 8 MiB, and a text that fits into a control message.
constexpr size_t kMaxFiles = 4096;
constexpr size_t kMaxRanges = 250'000;
constexpr int64_t kMaxFileBytes = int64_t{1} << 42;
constexpr size_t kMaxNameBytes = 255;
constexpr int32_t kMaxLayers = 65536;
constexpr size_t kRangeFields = 6;

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kCorrupt, cat("model manifest: ", what)); }

/// A file of the model's folder, and nothing that a path could make of it.
void check_name(const std::string& name) {
  const bool is_plain = !name.empty() && name.size() <= kMaxNameBytes && name != "." && name != ".." &&
                        std::ranges::all_of(name, [](char c) {
                          const auto byte = static_cast<unsigned char>(c);
                          return byte >= 0x20 && byte != 0x7f && c != '/' && c != '\\';
                        });
  if (!is_plain) refuse(cat("file name '", printable(name), "', expected one without folders"));
}

uint64_t digest_from(const std::string& text) {
  uint64_t digest = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), digest, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size()) {
    refuse(cat("digest '", printable(text), "', expected 16 hexadecimal digits"));
  }
  return digest;
}

ManifestRange range_from(const nlohmann::json& row, const ModelManifest& manifest) {
  if (!row.is_array() || row.size() != kRangeFields || !row[3].is_string()) {
    refuse("a range that is not [file, offset, bytes, digest, unit, layer]");
  }
  const auto files = static_cast<int64_t>(manifest.files.size());
  ManifestRange range;
  range.file = static_cast<uint32_t>(as_integer(row[0], "file of a range", 0, files - 1));
  range.offset = as_integer(row[1], "offset of a range", 0, kMaxFileBytes);
  range.bytes = as_integer(row[2], "bytes of a range", 1, kMaxRangeBytes);
  range.digest = digest_from(row[3].get<std::string>());
  range.unit =
      static_cast<RangeUnit>(as_integer(row[4], "unit of a range", 0, static_cast<int64_t>(RangeUnit::kOutput)));
  const bool is_layer = range.unit == RangeUnit::kAttention || range.unit == RangeUnit::kFeedForward;
  range.layer = static_cast<int32_t>(
      as_integer(row[5], "layer of a range", is_layer ? 0 : -1, is_layer ? manifest.num_layers - 1 : -1));
  const ManifestFile& file = manifest.files[range.file];
  if (range.bytes > file.bytes - range.offset) {
    refuse(cat("range ", range.offset, " + ", range.bytes, " of ", printable(file.name), ", which has ", file.bytes,
               " bytes"));
  }
  return range;
}

void check_order(const std::vector<ManifestRange>& ranges) {
  for (size_t i = 1; i < ranges.size(); ++i) {
    const ManifestRange& before = ranges[i - 1];
    const ManifestRange& range = ranges[i];
    const bool follows =
        range.file > before.file || (range.file == before.file && range.offset >= before.offset + before.bytes);
    if (!follows) refuse(cat("range ", i, " overlaps the one before it or is out of order"));
  }
}

}  // namespace

bool ModelManifest::needs(const StageUnits& units, const ManifestRange& range) const noexcept {
  switch (range.unit) {
    case RangeUnit::kHeader:
      return true;
    case RangeUnit::kEmbedding:
      return units.embedding || (units.output && tied_output);
    case RangeUnit::kAttention:
      return units.has_attention(range.layer);
    case RangeUnit::kFeedForward:
      return units.has_feed_forward(range.layer);
    case RangeUnit::kOutput:
      return units.output;
  }
  return true;
}

std::string ModelManifest::hash() const {
  std::vector<std::byte> bytes;
  const auto add_text = [&](const std::string& text) {
    append_count(bytes, text.size());
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  };
  append_le(bytes, kVersion);
  add_text(entry);
  append_le(bytes, static_cast<uint8_t>(tied_output));
  append_le(bytes, num_layers);
  append_count(bytes, files.size());
  for (const ManifestFile& file : files) {
    add_text(file.name);
    append_le(bytes, file.bytes);
  }
  append_count(bytes, ranges.size());
  for (const ManifestRange& range : ranges) {
    append_le(bytes, range.file);
    append_le(bytes, range.offset);
    append_le(bytes, range.bytes);
    append_le(bytes, range.digest);
    append_le(bytes, static_cast<uint8_t>(range.unit));
    append_le(bytes, range.layer);
  }
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string manifest_json(const ModelManifest& manifest) {
  nlohmann::json json{
      {"version", kVersion},           {"entry", manifest.entry},          {"tied_output", manifest.tied_output},
      {"layers", manifest.num_layers}, {"files", nlohmann::json::array()}, {"ranges", nlohmann::json::array()}};
  for (const ManifestFile& file : manifest.files) json["files"].push_back({file.name, file.bytes});
  nlohmann::json& ranges = json["ranges"];
  for (const ManifestRange& range : manifest.ranges) {
    ranges.push_back({range.file, range.offset, range.bytes, fmt::format("{:016x}", range.digest),
                      static_cast<int>(range.unit), range.layer});
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ModelManifest parse_manifest(std::string_view text) {
  const nlohmann::json json = parse_json("model manifest", text);
  (void)read_integer(json, "version", kVersion, kVersion);
  ModelManifest manifest;
  manifest.entry = read_text(json, "entry", kMaxNameBytes);
  manifest.tied_output = read_bool(json, "tied_output");
  manifest.num_layers = static_cast<int32_t>(read_integer(json, "layers", 1, kMaxLayers));
  std::set<std::string> names;
  for (const nlohmann::json& row : read_array(json, "files", 1, kMaxFiles)) {
    if (!row.is_array() || row.size() != 2 || !row[0].is_string()) refuse("a file that is not [name, bytes]");
    ManifestFile file{.name = row[0].get<std::string>(),
                      .bytes = as_integer(row[1], "bytes of a file", 0, kMaxFileBytes)};
    check_name(file.name);
    if (!names.insert(file.name).second) refuse(cat("file ", printable(file.name), " occurs twice"));
    manifest.files.push_back(std::move(file));
  }
  if (!manifest.entry.empty() && !names.contains(manifest.entry)) {
    refuse(cat("entry '", printable(manifest.entry), "' is none of the files"));
  }
  for (const nlohmann::json& row : read_array(json, "ranges", 1, kMaxRanges)) {
    manifest.ranges.push_back(range_from(row, manifest));
  }
  check_order(manifest.ranges);
  return manifest;
}

uint64_t digest_of(std::span<const std::byte> bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace headrace::cluster
