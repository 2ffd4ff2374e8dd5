#include "cluster/model_share.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "arch/registry.h"
#include "base/error.h"
#include "base/log.h"
#include "cluster/named_error.h"
#include "files/json_file.h"

namespace headrace::cluster {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndex = "model.safetensors.index.json";

/// The mapped files that tensors lie in, opened again: ModelFiles keeps its own to itself.
std::vector<std::string> weight_files(const ModelFiles& files) {
  std::vector<std::string> paths;
  const auto add = [&](std::span<const MappedFile> mapped) {
    for (const MappedFile& file : mapped) paths.push_back(file.path());
  };
  if (files.format() == ModelFormat::kGguf) {
    add(GgufFile::open(files.path()).files());
    return paths;
  }
  const fs::path folder(files.path());
  if (fs::exists(folder / kIndex)) {
    add(SafetensorsModel::open_index((folder / kIndex).string()).files());
    return paths;
  }
  const fs::path usual = folder / "model.safetensors";
  if (fs::exists(usual)) return {usual.string()};
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path().string());
  }
  return paths;
}

/// Where the tensors of a file lie in it, by name.
TensorTable tensors_in(const MappedFile& file, ModelFormat format) {
  if (format == ModelFormat::kGguf) return GgufFile::parse(file.path(), file.bytes()).table();
  return parse_safetensors(file.path(), file.bytes()).tensors;
}

struct UnitOfTensor {
  RangeUnit unit = RangeUnit::kHeader;
  int32_t layer = -1;
};

RangeUnit range_unit(UnitKind unit) noexcept {
  switch (unit) {
    case UnitKind::kEmbedding:
      return RangeUnit::kEmbedding;
    case UnitKind::kAttention:
      return RangeUnit::kAttention;
    case UnitKind::kFeedForward:
      return RangeUnit::kFeedForward;
    case UnitKind::kOutput:
      return RangeUnit::kOutput;
  }
  return RangeUnit::kHeader;
}

std::map<std::string, UnitOfTensor, std::less<>> units_by_name(const ArchSpec& spec, ModelFormat format) {
  std::map<std::string, UnitOfTensor, std::less<>> units;
  for (const TensorSpec& tensor : spec.tensors) {
    units[format == ModelFormat::kGguf ? tensor.name : tensor.hf_name] = {range_unit(tensor.unit), tensor.layer};
  }
  return units;
}

/// Tensors beside the spec's are read while the spec is made (the factors of rotary positions) or by nobody (a copy of
/// a tied output): the former are small.
constexpr int64_t kMaxExtraBytes = 1 << 20;

void add_ranges(ModelManifest& manifest, uint32_t file, int64_t offset, int64_t bytes, UnitOfTensor unit) {
  for (int64_t at = 0; at < bytes; at += kMaxRangeBytes) {
    manifest.ranges.push_back({.file = file,
                               .offset = offset + at,
                               .bytes = std::min(kMaxRangeBytes, bytes - at),
                               .digest = 0,
                               .unit = unit.unit,
                               .layer = unit.layer});
  }
}

void add_weight_file(ModelManifest& manifest, const MappedFile& mapped, ModelFormat format,
                     const std::map<std::string, UnitOfTensor, std::less<>>& units) {
  const auto file = static_cast<uint32_t>(manifest.files.size());
  const auto size = static_cast<int64_t>(mapped.bytes().size());
  manifest.files.push_back({fs::path(mapped.path()).filename().string(), size});
  const TensorTable table = tensors_in(mapped, format);
  std::vector<NamedTensor> tensors(table.all().begin(), table.all().end());
  std::erase_if(tensors, [](const NamedTensor& tensor) { return tensor.view.bytes.empty(); });
  std::ranges::sort(tensors, {}, [](const NamedTensor& tensor) { return tensor.view.bytes.data(); });
  const auto offset_of = [&](const NamedTensor& tensor) { return tensor.view.bytes.data() - mapped.bytes().data(); };
  add_ranges(manifest, file, 0, tensors.empty() ? size : offset_of(tensors.front()), {});
  for (const NamedTensor& tensor : tensors) {
    const auto bytes = static_cast<int64_t>(tensor.view.bytes.size());
    const auto found = units.find(tensor.name);
    if (found == units.end() && bytes > kMaxExtraBytes) continue;
    add_ranges(manifest, file, offset_of(tensor), bytes, found == units.end() ? UnitOfTensor{} : found->second);
  }
}

/// What tells a file that was changed from one that was not.
nlohmann::json stamps_of(const std::vector<MappedFile>& files) {
  nlohmann::json stamps = nlohmann::json::array();
  for (const MappedFile& file : files) {
    struct stat status = {};
    if (::stat(file.path().c_str(), &status) != 0) throw LoadError(file.path(), "is gone");
    stamps.push_back({fs::absolute(file.path()).string(), status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                      status.st_ino});
  }
  return stamps;
}

/// Takes the digests over from a manifest of the same files, if it is one.
bool take_digests(ModelManifest& manifest, const fs::path& path, const nlohmann::json& stamps) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return false;
  try {
    const nlohmann::json json = load_json(path.string());
    if (json.at("stamps") != stamps) return false;
    ModelManifest kept = parse_manifest(json.at("manifest").dump());
    if (kept.ranges.size() != manifest.ranges.size()) return false;
    for (size_t i = 0; i < kept.ranges.size(); ++i) manifest.ranges[i].digest = kept.ranges[i].digest;
    return kept == manifest;
  } catch (const std::exception& error) {
    log_warn("{}: not used: {}", path.string(), error.what());
    return false;
  }
}

void keep_digests(const ModelManifest& manifest, const fs::path& path, const nlohmann::json& stamps) {
  const nlohmann::json json{{"stamps", stamps}, {"manifest", nlohmann::json::parse(manifest_json(manifest))}};
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  // Written whole beside its place first: another process may be reading.
  const fs::path partial = cat(path.string(), ".", getpid());
  std::ofstream out(partial);
  out << json.dump() << '\n';
  out.close();
  if (out) fs::rename(partial, path, error);
  if (!out || error) log_warn("{}: cannot be written; digests will be made again at the next start", path.string());
}

}  // namespace

ModelShare::ModelShare(const ModelFiles& files, const ArchSpec& spec, const std::optional<fs::path>& cache,
                       const Progress& progress) {
  manifest_.tied_output = spec.tied_output;
  manifest_.num_layers = spec.num_layers();
  const std::vector<std::string> weights = weight_files(files);
  const fs::path folder = fs::path(weights.front()).parent_path();
  const auto units = units_by_name(spec, files.format());
  for (const std::string& path : weights) {
    if (fs::path(path).parent_path() != folder) {
      throw LoadError(files.path(),
                      cat(printable(path),
                          " lies in another folder: such a model cannot be sent to workers; give each a "
                          "copy of its own"),
                      ErrorCode::kUnsupported);
    }
    files_.emplace_back(path);
    add_weight_file(manifest_, files_.back(), files.format(), units);
  }
  if (files.format() == ModelFormat::kGguf) {
    manifest_.entry = fs::path(files.path()).filename().string();
  } else {
    for (const std::string_view name :
         {std::string_view("config.json"), std::string_view("generation_config.json"), kIndex}) {
      if (!fs::exists(folder / name)) continue;
      files_.emplace_back((folder / name).string());
      const auto size = static_cast<int64_t>(files_.back().bytes().size());
      add_ranges(manifest_, static_cast<uint32_t>(manifest_.files.size()), 0, size, {});
      manifest_.files.push_back({std::string(name), size});
    }
  }
  const nlohmann::json stamps = stamps_of(files_);
  const std::string key = stamps.front().at(0).get<std::string>();
  const fs::path kept =
      cache ? *cache / "manifests" / fmt::format("{:016x}.json", digest_of(std::as_bytes(std::span(key)))) : fs::path();
  if (kept.empty() || !take_digests(manifest_, kept, stamps)) {
    for (size_t i = 0; i < manifest_.ranges.size(); ++i) {
      if (progress) progress(static_cast<double>(i) / static_cast<double>(manifest_.ranges.size()));
      manifest_.ranges[i].digest = digest_of(bytes(i));
      drop_pages(i);
    }
    if (!kept.empty()) keep_digests(manifest_, kept, stamps);
  }
  hash_ = manifest_.hash();
}

std::span<const std::byte> ModelShare::bytes(size_t range) const noexcept {
  if (range >= manifest_.ranges.size()) return {};
  const ManifestRange& r = manifest_.ranges[range];
  return files_[r.file].bytes().subspan(static_cast<size_t>(r.offset), static_cast<size_t>(r.bytes));
}

void ModelShare::drop_pages(size_t range) const noexcept {
  if (range < manifest_.ranges.size()) files_[manifest_.ranges[range].file].drop_pages(bytes(range));
}

Result<std::string> local_copy(const std::string& argument, const std::string& hash,
                               const std::optional<fs::path>& cache, const ModelShare::Progress& progress) {
  try {
    const ModelFiles files = open_model(argument);
    const ModelShare share(files, make_arch_spec(files), cache, progress);
    if (share.hash() == hash) return argument;
    return Error(ErrorCode::kInvalidArgument, cat("the local copy ", printable(argument), " is not used: it is model ",
                                                  share.hash(), ", the head has ", printable(hash)));
  } catch (const Error& error) {
    return named_error("the local copy is not used", error);
  }
}

}  // namespace headrace::cluster
