#include "files/gguf.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "files/gguf_parse.h"
#include "files/gguf_split.h"

namespace headrace {
namespace {

constexpr int64_t kMaxShards = 99999;  // five digits in the file names

/// Where a file stands in a split model, as its metadata say; count 1 where it is not split.
struct SplitPlace {
  int64_t index = 0;  ///< from 0
  int64_t count = 1;
};

SplitPlace split_place(const Metadata& metadata) {
  SplitPlace place;
  place.count = metadata.get_int("split.count", 0, kMaxShards).value_or(1);
  if (place.count <= 1) return {};
  place.index = metadata.require_int("split.no", 0, place.count - 1);
  return place;
}

/// Path of shard `index`, given that of shard 0.
std::string shard_path(const std::string& first, int64_t index, int64_t count) {
  const std::string suffix = split_suffix(0, count);
  if (!first.ends_with(suffix)) {
    throw LoadError(first, cat("split.count: the first of ", count, " files, but its name does not end in \"", suffix,
                               "\", so the others cannot be found"));
  }
  return first.substr(0, first.size() - suffix.size()) + split_suffix(index, count);
}

GgufContents open_shard(const std::string& first, const MappedFile& file, SplitPlace expected) {
  GgufContents shard = parse_gguf(file.path(), file.bytes());
  const SplitPlace found = split_place(shard.metadata);
  if (found.count != expected.count) {
    shard.metadata.fail("split.count", cat("found ", found.count, ", but ", printable(first), " has ", expected.count));
  }
  if (found.index != expected.index) {
    shard.metadata.fail("split.no", cat("found ", found.index, ", expected ", expected.index));
  }
  return shard;
}

}  // namespace

GgufFile GgufFile::open(const std::string& path) {
  GgufFile out;
  out.files_.emplace_back(path);
  GgufContents first = parse_gguf(path, out.files_[0].bytes());
  out.metadata_ = std::move(first.metadata);
  out.table_ = std::move(first.tensors);
  out.version_ = first.version;
  const SplitPlace place = split_place(out.metadata_);
  if (place.count <= 1) return out;

  if (place.index != 0) {
    out.metadata_.fail("split.no",
                       cat("this is file ", place.index + 1, " of ", place.count,
                           " of a split model; give the first, which ends in \"", split_suffix(0, place.count), "\""));
  }
  for (int64_t i = 1; i < place.count; ++i) {
    const std::string next = shard_path(path, i, place.count);
    std::error_code ignored;
    if (!std::filesystem::exists(next, ignored)) {
      throw LoadError(path, cat("file ", i + 1, " of ", place.count, " of the split model is missing: ", next),
                      ErrorCode::kNotFound);
    }
    out.files_.emplace_back(next);
    const GgufContents shard = open_shard(path, out.files_.back(), {i, place.count});
    for (const NamedTensor& tensor : shard.tensors.all()) {
      if (!out.table_.add(tensor)) {
        throw LoadError(next, cat("tensor ", printable(tensor.name), ": another file of the split model has it too"));
      }
    }
  }
  const auto found = static_cast<int64_t>(out.table_.size());
  const int64_t expected = out.metadata_.get_int("split.tensors.count").value_or(found);
  if (expected != found) {
    out.metadata_.fail("split.tensors.count", cat("says ", expected, ", but the ", place.count, " files have ", found));
  }
  return out;
}

GgufFile GgufFile::parse(std::string name, std::span<const std::byte> bytes) {
  GgufFile out;
  GgufContents contents = parse_gguf(name, bytes);
  out.metadata_ = std::move(contents.metadata);
  out.table_ = std::move(contents.tensors);
  out.version_ = contents.version;
  return out;
}

void GgufFile::drop_pages(std::span<const std::byte> part) const noexcept {
  for (const MappedFile& file : files_) file.drop_pages(part);
}

}  // namespace headrace
